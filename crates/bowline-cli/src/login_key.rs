//! The key that seals stored logins: from the environment, a file, or the keyring of the system.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bowline_http::auth::SealingKey;
use std::{io::Read as _, path::Path};

/// The variable with the key itself, or `keyring`.
const KEY: &str = "BOWLINE_LOGIN_KEY";
/// The variable with the path of a file with the key.
const FILE: &str = "BOWLINE_LOGIN_KEY_FILE";
/// The value of [`KEY`] that selects the keyring.
const KEYRING: &str = "keyring";
/// The maximum size of a key file.
const MAX_BYTES: u64 = 4096;

/// Returns the key that seals stored logins; `None` if the user has configured none.
pub(crate) fn sealing_key(context: &Context) -> Result<Option<SealingKey>, Failure> {
    let variable = |name: &str| {
        let value = context.environment.variables.variable(name);
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    let bytes = match (variable(KEY), variable(FILE)) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            let sentence = format!("`{KEY}` and `{FILE}` exclude each other");
            return Err(Failure::new(Code::Config, sentence).advise("unset one of them"));
        }
        (Some(value), None) if value == KEYRING => from_keyring().map_err(|reason| {
            Failure::new(Code::Config, format!("cannot use the keyring: {reason}"))
                .advise(format!("set `{FILE}` to a file with a key instead"))
        })?,
        (Some(value), None) => parse(&value).ok_or_else(|| invalid(&format!("`{KEY}` is not a key")))?,
        (None, Some(path)) => {
            let text = read(Path::new(&path))
                .map_err(|reason| Failure::new(Code::Config, format!("key file `{path}` {reason}")))?;
            parse(text.trim()).ok_or_else(|| invalid(&format!("key file `{path}` does not contain a key")))?
        }
    };
    SealingKey::new(&bytes).map(Some).map_err(|error| Failure::new(Code::Config, error.to_string()))
}

/// The value is not shown: it may be a key with a typo.
fn invalid(sentence: &str) -> Failure {
    Failure::new(Code::Config, format!("{sentence}; expected 32 bytes as 64 hexadecimal digits or in base64"))
        .advise("create one with `openssl rand -base64 32`")
}

/// Reads 32 bytes from hexadecimal digits or base64 of either alphabet.
fn parse(text: &str) -> Option<[u8; SealingKey::LENGTH]> {
    if text.len() == 2 * SealingKey::LENGTH && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let mut bytes = [0; SealingKey::LENGTH];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        return Some(bytes);
    }
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    [alphabet::STANDARD, alphabet::URL_SAFE]
        .iter()
        .find_map(|alphabet| GeneralPurpose::new(alphabet, config).decode(text).ok())
        .and_then(|bytes| bytes.try_into().ok())
}

/// Reads a file that only its owner can read.
fn read(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be read: {error}");
    let file = bowline_config::open_regular(path).map_err(failed)?;
    if !bowline_files::is_owner_only(&file.metadata().map_err(failed)?) {
        return Err("belongs to another user or is readable by others; run `chmod 600`".to_owned());
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

/// Returns the key in the keyring of the user, and creates it if there is none.
#[cfg(all(feature = "keyring", any(target_os = "macos", windows)))]
fn from_keyring() -> Result<[u8; SealingKey::LENGTH], String> {
    let entry = keyring::Entry::new("bowline", "logins").map_err(|error| error.to_string())?;
    match entry.get_secret() {
        Ok(bytes) => bytes.try_into().map_err(|_| "its entry `bowline` does not contain a key".to_owned()),
        Err(keyring::Error::NoEntry) => {
            let bytes = SealingKey::generate().map_err(|error| error.to_string())?;
            entry.set_secret(&bytes).map_err(|error| error.to_string())?;
            Ok(bytes)
        }
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(not(all(feature = "keyring", any(target_os = "macos", windows))))]
fn from_keyring() -> Result<[u8; SealingKey::LENGTH], String> {
    let reason = if cfg!(any(target_os = "macos", windows)) {
        "this program was built without the feature `keyring`"
    } else {
        "only those of macOS and Windows are supported"
    };
    Err(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_either_encoding() {
        let hex = "00".repeat(31) + "fF";
        let mut expected = [0; 32];
        expected[31] = 0xff;
        assert_eq!(parse(&hex), Some(expected));
        let base64 = "A".repeat(41) + "P8";
        for text in [base64.clone(), format!("{base64}=")] {
            assert_eq!(parse(&text), Some(expected), "{text}");
        }
        assert_eq!(parse(&("_".repeat(42) + "8")), Some([0xff; 32]));
        assert_eq!(parse(&("/".repeat(42) + "8=")), Some([0xff; 32]));
        for text in ["", "keyring", "00", &"g".repeat(64), &"A".repeat(42), &"A".repeat(44)] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
