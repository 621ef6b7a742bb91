//! Random bytes of the operating system.

use ring::rand::{SecureRandom, SystemRandom};

/// Fresh random bytes.
///
/// The operating system's generator fails only where nothing secret can be made at all.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system has a random generator");
    bytes
}

/// Returns a random name that cannot be guessed.
pub fn id() -> String {
    let number = u128::from_be_bytes(bytes());
    format!("{number:032x}")
}
