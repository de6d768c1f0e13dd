use mm_kernels::{mm, DLTensor};

fn main() {
    let memory = 0x1000 as *mut std::ffi::c_void;
    let half = (2, 16);
    let input = DLTensor::new(memory, 0, half, &[64, 32], &[32, 1]);
    let other = DLTensor::new(memory, 0, half, &[32, 48], &[48, 1]);
    let output = DLTensor::new(memory, 0, half, &[64, 48], &[48, 1]);
    let wrong = DLTensor::new(memory, 0, half, &[64], &[1]);
    // SAFETY: the recording driver reads no memory.
    unsafe {
        mm(std::ptr::null_mut(), &input, &other, &output).unwrap();
        println!("{}", mm(std::ptr::null_mut(), &input, &other, &wrong).unwrap_err());
    }
}
