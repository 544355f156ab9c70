#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| apibinding_fuzz::locks(data));
