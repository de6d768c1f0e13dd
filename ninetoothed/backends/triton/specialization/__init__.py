"""What is known of one call: which conditions hold, unit strides, divisors, ranges."""
