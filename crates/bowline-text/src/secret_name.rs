//! Recognizes names of secrets.

/// Parts of names of secrets, also across word boundaries.
const PARTS: [&str; 14] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "authorization",
    "cookie",
    "credential",
    "bearer",
    "cardnumber",
];

/// Words that name a secret on their own.
const WORDS: [&str; 8] = ["pwd", "pass", "key", "keys", "auth", "cvv", "cvc", "ssn"];

/// Returns whether a member, field or header with this name probably holds a secret: `apiKey`, `X-Auth-Token`,
/// `user_password`.
///
/// In doubt the answer is `true`.
pub fn is_secret_name(name: &str) -> bool {
    let joined: String =
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    PARTS.iter().any(|part| joined.contains(part))
        || words(name).any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// Members of messages that are named like secrets but are not.
const HARMLESS: [&str; 3] = ["progressToken", "maxTokens", "nextCursor"];

/// Members of OAuth that contain secrets but are not named like one.
const OAUTH_MEMBERS: [&str; 3] = ["assertion", "client_assertion", "code_verifier"];

/// Members that contain definitions of parameters, not values.
const SCHEMAS: [&str; 3] = ["inputSchema", "outputSchema", "requestedSchema"];

/// What the names of the enclosing members say about a value in a message.
///
/// ```
/// use bowline_text::MemberKind;
///
/// let arguments = MemberKind::Plain.member("arguments");
/// assert_eq!(arguments.member("apiKey").member("anything"), MemberKind::Secret);
/// assert_eq!(MemberKind::Plain.member("inputSchema").member("apiKey"), MemberKind::Schema);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberKind {
    /// Nothing.
    #[default]
    Plain,
    /// It is a secret, or part of one.
    Secret,
    /// It is part of a schema, where names are those of parameters.
    Schema,
}

impl MemberKind {
    /// Returns the kind of the member `name` of an object of this kind.
    #[must_use]
    pub fn member(self, name: &str) -> Self {
        match self {
            Self::Plain if SCHEMAS.contains(&name) => Self::Schema,
            Self::Plain if OAUTH_MEMBERS.contains(&name) => Self::Secret,
            Self::Plain if is_secret_name(name) && !HARMLESS.contains(&name) => Self::Secret,
            kind => kind,
        }
    }
}

/// Returns whether the label of a form field asks for a secret. This is narrower than [`is_secret_name`], because such
/// a form is refused.
pub fn asks_for_secret(label: &str) -> bool {
    const REFUSED: [&str; 11] = [
        "password",
        "passwd",
        "passphrase",
        "passcode",
        "secretkey",
        "clientsecret",
        "apikey",
        "accesstoken",
        "apitoken",
        "privatekey",
        "cardnumber",
    ];
    let joined: String =
        label.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let whole = ["secret", "token", "pin", "cvv", "cvc", "ssn", "credentials", "seedphrase"];
    whole.contains(&joined.as_str()) || REFUSED.iter().any(|part| joined.contains(part))
}

/// Splits a name in camel, snake or kebab case into words.
fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|letter: char| !letter.is_alphanumeric()).flat_map(|part| {
        let mut rest = part;
        std::iter::from_fn(move || {
            let mut letters = rest.char_indices().skip(1).peekable();
            let mut end = rest.len();
            let mut before = rest.chars().next()?;
            while let Some((place, letter)) = letters.next() {
                // `apiKey` splits at the capital, `HTTPServer` at the last one.
                let ends_capitals = before.is_uppercase()
                    && letter.is_uppercase()
                    && letters.peek().is_some_and(|(_, next)| next.is_lowercase());
                if (before.is_lowercase() && letter.is_uppercase()) || ends_capitals {
                    end = place;
                    break;
                }
                before = letter;
            }
            let (word, behind) = rest.split_at_checked(end)?;
            rest = behind;
            Some(word)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known() {
        for name in [
            "password",
            "dbPassword",
            "API_KEY",
            "apiKey",
            "x-api-key",
            "key",
            "signingKey",
            "Authorization",
            "Set-Cookie",
            "access_token",
            "clientSecret",
            "aws_secret_access_key",
            "pwd",
            "AUTH",
            "Pass Word",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["path", "monkey", "keyboard", "author", "passenger", "", "é", "query", "HTTPServer"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn forms_may_ask_for_keys_that_are_not_secrets() {
        for label in ["Password", "your pass-phrase", "API key", "token", "PIN"] {
            assert!(asks_for_secret(label), "{label}");
        }
        for label in ["primary key", "max tokens", "Secret Santa partner", "pinned", "shipping"] {
            assert!(!asks_for_secret(label), "{label}");
        }
    }

    #[test]
    fn words_are_split() {
        let of = |name: &'static str| words(name).collect::<Vec<_>>();
        assert_eq!(of("apiKey_old-HTTPServer"), ["api", "Key", "old", "HTTP", "Server"]);
        assert_eq!(of("éÀé"), ["é", "Àé"]);
    }
}
