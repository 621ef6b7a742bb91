//! Chooses the verifier of a token by its issuer.

use super::{Expected, MAX_VERDICT_AGE, Refusal, Verification, Verify};
use crate::{
    Issuer,
    jose::{Claims, JoseError, Jws},
};
use std::sync::Arc;

/// Several verifiers, one per issuer.
///
/// The claim `iss` of a token, which is not verified yet, only selects the verifier. That one compares it again, so a token
/// gains nothing by naming another issuer.
#[derive(Clone, Debug, Default)]
pub struct Issuers {
    verifiers: Vec<(Issuer, Arc<dyn Verify>)>,
}

impl Issuers {
    /// Creates a verifier without issuers, which refuses every token.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the verifier for tokens of an issuer.
    #[must_use]
    pub fn with(mut self, issuer: Issuer, verifier: impl Verify) -> Self {
        self.verifiers.push((issuer, Arc::new(verifier)));
        self
    }

    fn select(&self, token: &str) -> Result<&dyn Verify, Refusal> {
        let issuer = unverified_issuer(token)?;
        let verifier = self.verifiers.iter().find(|(known, _)| Some(known.as_str()) == issuer.as_deref());
        verifier
            .map(|(_, verifier)| &**verifier)
            .ok_or_else(|| Refusal::invalid("the token is from another issuer"))
    }
}

/// Returns the claim `iss`, without verification.
fn unverified_issuer(token: &str) -> Result<Option<String>, JoseError> {
    let jws = Jws::parse(token)?;
    let claims = Claims::parse(jws.unverified_payload())?;
    Ok(claims.text("iss")?.map(str::to_owned))
}

impl Verify for Issuers {
    fn verify<'a>(&'a self, token: &'a str, expected: Expected<'a>) -> Verification<'a> {
        match self.select(token) {
            Ok(verifier) => verifier.verify(token, expected),
            Err(refusal) => Err(refusal).into(),
        }
    }

    fn generation(&self) -> u64 {
        // Generations only grow, so the sum changes with each of them.
        self.verifiers.iter().fold(0, |sum, (_, verifier)| sum.wrapping_add(verifier.generation()))
    }

    fn max_age(&self) -> u64 {
        self.verifiers.iter().map(|(_, verifier)| verifier.max_age()).min().unwrap_or(MAX_VERDICT_AGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verifier that refuses everything.
    #[derive(Debug)]
    struct Aged {
        max_age: u64,
        generation: u64,
    }

    impl Verify for Aged {
        fn verify<'a>(&'a self, _: &'a str, _: Expected<'a>) -> Verification<'a> {
            Err(Refusal::invalid("nothing is accepted")).into()
        }

        fn generation(&self) -> u64 {
            self.generation
        }

        fn max_age(&self) -> u64 {
            self.max_age
        }
    }

    #[test]
    fn verdicts_are_kept_as_long_as_the_strictest_verifier_allows() {
        let issuer = |name: &str| Issuer::new(format!("https://{name}.example")).unwrap();
        assert_eq!(Issuers::new().max_age(), MAX_VERDICT_AGE);
        let both = Issuers::new()
            .with(issuer("a"), Aged { max_age: 60, generation: 3 })
            .with(issuer("b"), Aged { max_age: 0, generation: 4 });
        assert_eq!((both.max_age(), both.generation()), (0, 7));
    }
}
