//! What calls.c does, in Rust: what goes wrong is an `Err`.

use std::os::raw::c_void;
use std::str::{FromStr, SplitWhitespace};

struct Tensor {
    address: i64,
    offset: u64,
    dtype: (u8, u8),
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn next<T: FromStr>(words: &mut SplitWhitespace) -> T {
    let word = words.next().expect("another word");
    word.parse().unwrap_or_else(|_| panic!("{word} is no such number"))
}

impl Tensor {
    fn read(words: &mut SplitWhitespace) -> Self {
        let (address, offset, dtype) = (next(words), next(words), (next(words), next(words)));
        let rank: usize = next(words);
        let mut sizes = || (0..rank).map(|_| next(words)).collect();
        Tensor { address, offset, dtype, shape: sizes(), strides: sizes() }
    }
}

/// A crate's tensor.
macro_rules! tensor {
    ($kernels:ident, $given:expr) => {{
        let given: &Tensor = $given;
        let address = given.address as *mut c_void;
        let mut made = $kernels::DLTensor::new(address, 0, given.dtype, &given.shape, &given.strides);
        made.byte_offset = given.offset;
        made
    }};
}

/// The call of a crate's kernel with some of the tensors, then some of the numbers, then tensors again.
macro_rules! call {
    ($tensors:ident, $numbers:ident, $kernels:ident::$kernel:ident($($t:literal),*; $($n:literal),*; $($u:literal),*)) => {
        // SAFETY: the recording driver reads no memory.
        unsafe {
            $kernels::$kernel(
                4711 as *mut c_void,
                $(&tensor!($kernels, &$tensors[$t]),)*
                $($numbers[$n],)*
                $(&tensor!($kernels, &$tensors[$u]),)*
            )
        }
        .map_err(|error| (error.code, error.message))
    };
}

fn main() {
    let path = std::env::args().nth(1).expect("a file of calls");
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let mut words = line.split_whitespace();
        let kernel: String = next(&mut words);
        let tensors: Vec<Tensor> = (0..next(&mut words)).map(|_| Tensor::read(&mut words)).collect();
        let numbers: Vec<f64> = (0..next(&mut words)).map(|_| next(&mut words)).collect();
        let result = match kernel.as_str() {
            "add" => call!(tensors, numbers, add_kernels::add(0, 1, 2; ;)),
            "addmm" => call!(tensors, numbers, addmm_kernels::addmm(0, 1, 2; 0, 1; 3)),
            "bmm" => call!(tensors, numbers, bmm_kernels::bmm(0, 1, 2; ;)),
            "conv2d" => call!(tensors, numbers, conv2d_kernels::conv2d(0, 1, 2; ;)),
            "mm" => call!(tensors, numbers, mm_kernels::mm(0, 1, 2; ;)),
            "rms_norm" => call!(tensors, numbers, rms_norm_kernels::rms_norm(0; 0; 1)),
            "rope" => call!(tensors, numbers, rope_kernels::rope(0, 1, 2, 3; ;)),
            "sdpa" => call!(tensors, numbers, sdpa_kernels::sdpa(0, 1, 2; 0; 3)),
            "silu" => call!(tensors, numbers, silu_kernels::silu(0, 1; ;)),
            "softmax" => call!(tensors, numbers, softmax_kernels::softmax(0, 1; ;)),
            other => panic!("no kernel is called {other}"),
        };
        match result {
            Ok(()) => println!("0 "),
            Err((code, message)) => println!("{code} {message}"),
        }
    }
}
