//! `application/x-www-form-urlencoded`: the bodies of token requests and the queries of redirects.

use crate::Secret;
use bowline_proto::uri::{form_decode, push_form_encoded};

/// At most this many parameters of a query are read.
const MAX_PARAMETERS: usize = 64;

/// A form that is being built. Its text is secret, because most forms of OAuth contain a code, a token or a secret.
#[derive(Clone, Debug)]
pub struct Form(Secret);

impl Default for Form {
    fn default() -> Self {
        Self::new()
    }
}

impl Form {
    /// Creates an empty form.
    #[must_use]
    pub fn new() -> Self {
        Self(Secret::new(""))
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(self, name: &str, value: &str) -> Self {
        let mut text = String::with_capacity(self.0.expose().len() + name.len() + value.len() + 2);
        text.push_str(self.0.expose());
        if !text.is_empty() {
            text.push('&');
        }
        push_form_encoded(&mut text, name);
        text.push('=');
        push_form_encoded(&mut text, value);
        Self(Secret::new(text))
    }

    /// Adds a parameter if there is a value.
    #[must_use]
    pub fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Returns the encoded text.
    #[must_use]
    pub fn text(&self) -> &Secret {
        &self.0
    }

    /// Appends the form to the query of a URL, which may have one already and has no fragment.
    #[must_use]
    pub fn append_to(&self, url: &str) -> String {
        let separator = match url.split_once('?') {
            None => "?",
            Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
            Some(_) => "&",
        };
        format!("{url}{separator}{}", self.0.expose())
    }
}

/// Encodes one name or value.
#[must_use]
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    push_form_encoded(&mut encoded, text);
    encoded
}

/// Reads a query or a form into its parameters, in order. `None` if it has too many parameters, a broken escape, or text
/// that is not UTF-8.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split('&').filter(|part| !part.is_empty());
    let mut parameters = Vec::new();
    for part in parts {
        if parameters.len() == MAX_PARAMETERS {
            return None;
        }
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        parameters.push((decode_value(name)?, decode_value(value)?));
    }
    Some(parameters)
}

/// Decodes one name or value. `None` if it has a broken escape or is not UTF-8.
#[must_use]
pub fn decode_value(text: &str) -> Option<String> {
    form_decode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_are_read_back() {
        let form = Form::new().with("a b", "1&2=3").with("é", "https://x/?q=ü+%").with_some("none", None);
        assert_eq!(form.text().expose(), "a+b=1%262%3D3&%C3%A9=https%3A%2F%2Fx%2F%3Fq%3D%C3%BC%2B%25");
        let read = decode(form.text().expose()).unwrap();
        assert_eq!(read, [("a b".into(), "1&2=3".into()), ("é".into(), "https://x/?q=ü+%".into())]);
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["a=%", "a=%4", "a=%zz", "a=%ff", "%c3=1", &"a=1&".repeat(65)] {
            assert_eq!(decode(text), None, "{text}");
        }
        assert_eq!(decode("&&a&b=&"), Some(vec![("a".into(), String::new()), ("b".into(), String::new())]));
    }

    #[test]
    fn a_query_is_extended() {
        let form = Form::new().with("x", "1");
        assert_eq!(form.append_to("https://h/a"), "https://h/a?x=1");
        assert_eq!(form.append_to("https://h/a?"), "https://h/a?x=1");
        assert_eq!(form.append_to("https://h/a?p=2"), "https://h/a?p=2&x=1");
    }

    #[test]
    fn a_form_is_not_printed() {
        assert_eq!(format!("{:?}", Form::new().with("code", "canary")), "Form(***)");
    }
}
