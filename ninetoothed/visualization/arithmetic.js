// Integer arithmetic as Python's: quotients round down, and dividing by the size of an empty
// dimension gives 0.

const modulo = (a, b) => (b === 0 ? 0 : ((a % b) + b) % b + 0);
const floordiv = (a, b) => (b === 0 ? 0 : (a - modulo(a, b)) / b + 0);
const and = (a, b) => Number(BigInt(a) & BigInt(b));
const or = (a, b) => Number(BigInt(a) | BigInt(b));

/** The least power of two that is no less. */
function padded(size) {
  let power = 1;
  while (power < size) power *= 2;
  return power;
}
