//! Who may use the page: one-time codes in links, keys of browsers, and what each key may do.

use crate::query::Grade;
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How many browsers may have a key of each grade. Beyond it the oldest key of that grade is revoked, so that keys that only look
/// do not revoke those of the person who acts.
const MAX_KEYS: usize = 16;
/// How many codes of each grade may be unused, or remembered after their use.
const MAX_CODES: usize = 32;
/// A code that is used again within this time revokes the key that it gave: one of the two was not the user.
const REUSE: Duration = Duration::from_secs(30);

/// A one-time code for a link. Its `Debug` shows nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// Returns the code, to be put into the fragment of a link.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A key of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) number: u64,
    pub(crate) grade: Grade,
}

/// Why a code gives no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Unknown,
    /// It was used before.
    Used,
    /// It was used just before; the key that it gave is revoked.
    UsedTwice,
}

/// Codes and keys of one launch. Nothing is stored as text: a wrong key costs one HMAC, and comparing tags tells nothing about keys.
pub(crate) struct Keys {
    mac: hmac::Key,
    secret: Vec<u8>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    codes: Vec<KnownCode>,
    keys: Vec<(Vec<u8>, Holder)>,
    next: u64,
}

struct KnownCode {
    tag: Vec<u8>,
    grade: Grade,
    used: Option<(Instant, u64)>,
}

/// A random number could not be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRandomness;

impl Keys {
    /// Creates the keys of a launch, and the secret with which its user makes new links.
    pub(crate) fn new() -> Result<(Self, String), NoRandomness> {
        let mac = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).map_err(|_| NoRandomness)?;
        let secret = random(32)?;
        let tag = hmac::sign(&mac, secret.as_bytes()).as_ref().to_vec();
        Ok((Self { mac, secret: tag, state: Mutex::default() }, secret))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tag(&self, text: &[u8]) -> Vec<u8> {
        hmac::sign(&self.mac, text).as_ref().to_vec()
    }

    /// Returns whether a text is the secret of this launch.
    pub(crate) fn is_secret(&self, text: &[u8]) -> bool {
        self.tag(text) == self.secret
    }

    /// Makes a code that gives a key of this grade, once.
    pub(crate) fn code(&self, grade: Grade) -> Result<Code, NoRandomness> {
        let code = random(16)?;
        let tag = self.tag(code.as_bytes());
        let mut state = self.state();
        if state.codes.iter().filter(|known| known.grade == grade).count() >= MAX_CODES {
            let used = state.codes.iter().position(|known| known.grade == grade && known.used.is_some());
            let oldest = || state.codes.iter().position(|known| known.grade == grade);
            if let Some(place) = used.or_else(oldest) {
                state.codes.remove(place);
            }
        }
        state.codes.push(KnownCode { tag, grade, used: None });
        Ok(Code(code))
    }

    /// Exchanges a code for a key.
    pub(crate) fn enter(&self, code: &str, now: Instant) -> Result<(String, Holder), Refused> {
        let tag = self.tag(code.as_bytes());
        let key = random(32).map_err(|NoRandomness| Refused::Unknown)?;
        let key_tag = self.tag(key.as_bytes());
        let mut state = self.state();
        let number = state.next + 1;
        let known = state.codes.iter_mut().find(|known| known.tag == tag).ok_or(Refused::Unknown)?;
        if let Some((used, number)) = known.used {
            let is_recent = now.saturating_duration_since(used) < REUSE;
            if is_recent {
                state.keys.retain(|(_, holder)| holder.number != number);
            }
            return Err(if is_recent { Refused::UsedTwice } else { Refused::Used });
        }
        known.used = Some((now, number));
        let holder = Holder { number, grade: known.grade };
        state.next = number;
        let mut same = state.keys.iter().enumerate().filter(|(_, (_, known))| known.grade == holder.grade);
        if let (Some((oldest, _)), true) = (same.next(), same.count() + 1 >= MAX_KEYS) {
            state.keys.remove(oldest);
        }
        state.keys.push((key_tag, holder));
        Ok((key, holder))
    }

    /// Returns whose key a text is.
    pub(crate) fn holder(&self, key: &[u8]) -> Option<Holder> {
        let tag = self.tag(key);
        self.state().keys.iter().find(|(known, _)| *known == tag).map(|(_, holder)| *holder)
    }

    /// Returns whether a key is still valid.
    pub(crate) fn is_valid(&self, number: u64) -> bool {
        self.state().keys.iter().any(|(_, holder)| holder.number == number)
    }

    /// Gives a key control. Returns false if it was revoked.
    pub(crate) fn grant(&self, number: u64) -> bool {
        let mut state = self.state();
        let is_control = |(_, holder): &(Vec<u8>, Holder)| holder.grade == Grade::Control;
        match state.keys.iter().find(|(_, holder)| holder.number == number) {
            None => return false,
            Some(key) if is_control(key) => return true,
            Some(_) => {}
        }
        if state.keys.iter().filter(|key| is_control(key)).count() >= MAX_KEYS
            && let Some(oldest) = state.keys.iter().position(is_control)
        {
            state.keys.remove(oldest);
        }
        let key = state.keys.iter_mut().find(|(_, holder)| holder.number == number);
        key.map(|(_, holder)| holder.grade = Grade::Control).is_some()
    }

    /// Revokes a key.
    pub(crate) fn revoke(&self, number: u64) {
        self.state().keys.retain(|(_, holder)| holder.number != number);
    }

    /// Revokes all keys and codes.
    pub(crate) fn revoke_all(&self) {
        let mut state = self.state();
        state.keys.clear();
        state.codes.clear();
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(***)")
    }
}

/// Returns random bytes in hexadecimal.
pub(crate) fn random(bytes: usize) -> Result<String, NoRandomness> {
    let mut drawn = vec![0; bytes];
    SystemRandom::new().fill(&mut drawn).map_err(|_| NoRandomness)?;
    Ok(bowline_text::hex(&drawn))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_a_second_use_revokes_its_key() {
        let (keys, _) = Keys::new().unwrap();
        let now = Instant::now();
        let code = keys.code(Grade::Control).unwrap();
        assert_eq!(code.expose().len(), 32);
        let (key, holder) = keys.enter(code.expose(), now).unwrap();
        assert_eq!((key.len(), holder.grade), (64, Grade::Control));
        assert_eq!(keys.holder(key.as_bytes()), Some(holder));
        assert_eq!(keys.enter(code.expose(), now + REUSE / 2).unwrap_err(), Refused::UsedTwice);
        assert_eq!(keys.holder(key.as_bytes()), None);
        let code = keys.code(Grade::View).unwrap();
        let (key, _) = keys.enter(code.expose(), now).unwrap();
        assert_eq!(keys.enter(code.expose(), now + REUSE).unwrap_err(), Refused::Used);
        assert!(keys.holder(key.as_bytes()).is_some());
        assert_eq!(keys.enter("wrong", now).unwrap_err(), Refused::Unknown);
    }

    #[test]
    fn there_are_sixteen_keys_at_most() {
        let (keys, secret) = Keys::new().unwrap();
        let now = Instant::now();
        let all: Vec<_> = (0..=MAX_KEYS)
            .map(|_| keys.enter(keys.code(Grade::View).unwrap().expose(), now).unwrap().0)
            .collect();
        let valid = all.iter().filter(|key| keys.holder(key.as_bytes()).is_some()).count();
        assert_eq!((valid, keys.holder(all[0].as_bytes())), (MAX_KEYS, None));
        assert!(keys.is_secret(secret.as_bytes()) && keys.holder(secret.as_bytes()).is_none());
        keys.revoke_all();
        assert!(keys.holder(all[5].as_bytes()).is_none());
    }

    #[test]
    fn view_keys_and_codes_revoke_no_control() {
        let (keys, _) = Keys::new().unwrap();
        let now = Instant::now();
        let (control, _) = keys.enter(keys.code(Grade::Control).unwrap().expose(), now).unwrap();
        let unused = keys.code(Grade::Control).unwrap();
        for _ in 0..=MAX_CODES {
            keys.enter(keys.code(Grade::View).unwrap().expose(), now).unwrap();
        }
        assert!(keys.holder(control.as_bytes()).is_some());
        assert!(keys.enter(unused.expose(), now).is_ok());
        // A link that waits is kept before one that was used.
        let waiting = keys.code(Grade::Control).unwrap();
        for _ in 0..=MAX_CODES {
            keys.enter(keys.code(Grade::Control).unwrap().expose(), now).unwrap();
        }
        assert!(keys.enter(waiting.expose(), now).is_ok());
    }

    #[test]
    fn a_key_is_granted_control_and_the_limit_holds() {
        let (keys, _) = Keys::new().unwrap();
        let now = Instant::now();
        let enter = |grade| keys.enter(keys.code(grade).unwrap().expose(), now).unwrap();
        let first = enter(Grade::Control).0;
        for _ in 1..MAX_KEYS {
            enter(Grade::Control);
        }
        let (key, holder) = enter(Grade::View);
        assert!(keys.grant(holder.number));
        assert_eq!(keys.holder(key.as_bytes()).map(|holder| holder.grade), Some(Grade::Control));
        assert_eq!(keys.holder(first.as_bytes()), None);
        // There is nothing to grant, so nobody loses a key.
        let count = || keys.state().keys.len();
        assert!(keys.grant(holder.number) && count() == MAX_KEYS);
        keys.revoke(holder.number);
        enter(Grade::Control);
        assert!(!keys.grant(holder.number));
        assert_eq!(count(), MAX_KEYS);
    }

    #[test]
    fn nothing_is_printed() {
        let (keys, _) = Keys::new().unwrap();
        assert_eq!(format!("{keys:?} {:?}", keys.code(Grade::View).unwrap()), "Keys(***) ***");
    }
}
