//! `WWW-Authenticate`: the challenges of a server, read and written (RFC 9110, 11.6.1).

use crate::Scopes;
use std::fmt::{self, Write as _};

/// At most this many bytes of a header line are read.
const MAX_LINE: usize = 16 * 1024;
/// At most this many challenges of a response are read.
const MAX_CHALLENGES: usize = 16;
/// At most this many parameters of a challenge are read.
const MAX_PARAMETERS: usize = 32;

/// One challenge: a scheme and its parameters.
///
/// ```
/// use bowline_auth::Challenge;
///
/// let lines = ["Basic realm=\"a, b\", Bearer error=\"insufficient_scope\", scope=\"notes:write\""];
/// let challenges = Challenge::parse_all(lines);
/// assert_eq!(challenges.len(), 2);
/// assert!(challenges[1].is("bearer"));
/// assert_eq!(challenges[1].error(), Some("insufficient_scope"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Creates a challenge without parameters.
    #[must_use]
    pub fn new(scheme: &str) -> Self {
        Self { scheme: scheme.to_owned(), parameters: Vec::new() }
    }

    /// Adds a parameter. Characters that a quoted string cannot contain are left out.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let value = value.chars().filter(|c| matches!(c, '\t' | ' '..='~')).collect();
        self.parameters.push((name.to_ascii_lowercase(), value));
        self
    }

    /// Reads every challenge in the lines of `WWW-Authenticate`. A line that breaks the grammar counts up to that position.
    pub fn parse_all<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut challenges = Vec::new();
        for line in lines {
            if line.len() <= MAX_LINE {
                parse_line(line, &mut challenges);
            }
        }
        challenges
    }

    /// Returns the scheme as it was written.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns whether the scheme is `scheme`, in any case.
    #[must_use]
    pub fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the first parameter of this name, which is given in lower case.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the parameter `error`.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Returns the parameter `resource_metadata` (RFC 9728).
    #[must_use]
    pub fn resource_metadata(&self) -> Option<&str> {
        self.parameter("resource_metadata")
    }

    /// Returns the parameter `scope`, if it is present and names at least one scope.
    #[must_use]
    pub fn scopes(&self) -> Option<Scopes> {
        self.parameter("scope").map(Scopes::parse).filter(|scopes| !scopes.is_empty())
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheme)?;
        for (index, (name, value)) in self.parameters.iter().enumerate() {
            write!(f, "{}{name}=\"", if index == 0 { " " } else { ", " })?;
            for c in value.chars() {
                if matches!(c, '"' | '\\') {
                    f.write_char('\\')?;
                }
                f.write_char(c)?;
            }
            f.write_char('"')?;
        }
        Ok(())
    }
}

/// Reads one line and adds its challenges to `challenges`.
fn parse_line(line: &str, challenges: &mut Vec<Challenge>) {
    let mut rest = Rest(line);
    loop {
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
        if rest.0.is_empty() || challenges.len() == MAX_CHALLENGES {
            return;
        }
        let Some(scheme) = rest.token() else { return };
        let mut challenge = Challenge::new(scheme);
        if rest.skip(is_space) > 0 {
            parse_parameters(&mut rest, &mut challenge);
        }
        challenges.push(challenge);
        rest.skip(is_space);
        if !rest.0.is_empty() && !rest.0.starts_with(',') {
            return;
        }
    }
}

/// Reads the parameters of one challenge and stops in front of the next scheme.
fn parse_parameters(rest: &mut Rest<'_>, challenge: &mut Challenge) {
    loop {
        let before = rest.0;
        rest.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
        let parameter = rest.token().and_then(|name| {
            rest.skip(is_space);
            rest.0 = rest.0.strip_prefix('=')?;
            rest.skip(is_space);
            Some((name.to_ascii_lowercase(), rest.value()?))
        });
        let Some(parameter) = parameter else {
            // The next scheme, or token68 credentials, which no challenge of ours uses.
            rest.0 = before;
            if challenge.parameters.is_empty() {
                rest.skip(|byte| !matches!(byte, b' ' | b'\t' | b','));
            }
            return;
        };
        if challenge.parameters.len() < MAX_PARAMETERS {
            challenge.parameters.push(parameter);
        }
        let before = rest.0;
        rest.skip(is_space);
        if !rest.0.starts_with(',') {
            rest.0 = before;
            return;
        }
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The part of a line that is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// Skips ASCII bytes that `skip` accepts and returns their number.
    fn skip(&mut self, skip: impl Fn(u8) -> bool) -> usize {
        let end = self.0.bytes().position(|byte| !byte.is_ascii() || !skip(byte)).unwrap_or(self.0.len());
        self.0 = &self.0[end..];
        end
    }

    fn token(&mut self) -> Option<&'a str> {
        let text = self.0;
        let end = self.skip(is_token);
        (end > 0).then(|| &text[..end])
    }

    /// Returns a token or a quoted string.
    fn value(&mut self) -> Option<String> {
        let Some(quoted) = self.0.strip_prefix('"') else {
            return self.token().map(str::to_owned);
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.push(characters.next()?.1),
                c => value.push(c),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Vec<String> {
        Challenge::parse_all([line]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn several_schemes_on_one_line_are_separate_challenges() {
        assert_eq!(
            parse(
                "Basic realm=\"a, b=c\", charset=UTF-8 , Bearer error=\"invalid_token\",DPoP algs=\"ES256\", Negotiate"
            ),
            [
                "Basic realm=\"a, b=c\", charset=\"UTF-8\"",
                "Bearer error=\"invalid_token\"",
                "DPoP algs=\"ES256\"",
                "Negotiate"
            ]
        );
    }

    #[test]
    fn several_lines_are_read_in_order() {
        let challenges = Challenge::parse_all(["Negotiate", "bearer scope = \"a b\" , ERROR=x"]);
        assert_eq!(challenges.len(), 2);
        assert!(challenges[1].is("Bearer"));
        assert_eq!(challenges[1].scopes(), Some(Scopes::parse("a b")));
        assert_eq!(challenges[1].error(), Some("x"));
    }

    #[test]
    fn only_the_parameter_error_is_the_error() {
        let challenges =
            Challenge::parse_all(["Bearer error_description=\"error=\\\"insufficient_scope\\\"\""]);
        assert_eq!(challenges[0].error(), None);
        assert_eq!(challenges[0].parameter("error_description"), Some("error=\"insufficient_scope\""));
    }

    #[test]
    fn credentials_after_a_scheme_do_not_hide_the_next_challenge() {
        assert_eq!(parse("Negotiate YIIabc==, Bearer scope=a"), ["Negotiate", "Bearer scope=\"a\""]);
    }

    #[test]
    fn broken_lines_count_up_to_the_mistake() {
        for (line, expected) in [
            ("", vec![]),
            (",, ,", vec![]),
            ("Bearer", vec!["Bearer"]),
            ("Bearer ", vec!["Bearer"]),
            ("Bearer scope=\"never closed", vec!["Bearer"]),
            ("Bearer scope=a;b, error=x", vec!["Bearer scope=\"a\""]),
            ("\u{e9}, Bearer", vec![]),
        ] {
            assert_eq!(parse(line), expected, "{line}");
        }
    }

    #[test]
    fn an_empty_scope_is_not_a_scope() {
        assert_eq!(Challenge::parse_all(["Bearer scope=\"\""])[0].scopes(), None);
    }

    #[test]
    fn written_values_are_read_back() {
        let challenge = Challenge::new("Bearer").with("realm", "a \"b\" \\ c\r\nd").with("scope", "x y");
        assert_eq!(challenge.to_string(), "Bearer realm=\"a \\\"b\\\" \\\\ cd\", scope=\"x y\"");
        assert_eq!(Challenge::parse_all([challenge.to_string().as_str()]), [challenge]);
    }

    #[test]
    fn what_is_read_has_limits() {
        let line = |length: usize| format!("Bearer scope=\"{}\"", "a".repeat(length - 15));
        assert_eq!(Challenge::parse_all([line(MAX_LINE).as_str(), line(MAX_LINE + 1).as_str()]).len(), 1);
        let many: Vec<String> = (0..MAX_PARAMETERS + 5).map(|number| format!("p{number}=x")).collect();
        let challenges = Challenge::parse_all([format!("Bearer {}, Basic", many.join(", ")).as_str()]);
        assert_eq!((challenges.len(), challenges[0].parameters.len()), (2, MAX_PARAMETERS));
        let many = vec!["Basic"; MAX_CHALLENGES + 5].join(", ");
        assert_eq!(Challenge::parse_all([many.as_str(), "Bearer"]).len(), MAX_CHALLENGES);
    }

    proptest::proptest! {
        #[test]
        fn any_line_ends(line in "[ -~\u{e9}\"\\\\,=]{0,80}") {
            let _ = Challenge::parse_all([line.as_str()]);
        }
    }
}
