//! Parameters that a model rejects although its API has them, learned from its errors.

use super::{provider_error::ProviderError, settings::Provider};
use http::StatusCode;

/// Parameters to omit or rename for a model. The protocol lets a client ignore all of them except the token limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Quirks {
    /// The name of the token limit.
    pub(super) limit: Limit,
    /// Whether the provider has confirmed the name.
    knows_limit: bool,
    /// Whether the model rejects a temperature.
    pub(super) no_temperature: bool,
    /// Whether the model rejects stop sequences; they are then applied to its output.
    pub(super) no_stops: bool,
}

/// The two names of the token limit in the OpenAI API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Limit {
    /// `max_tokens`, which most providers support.
    #[default]
    Tokens,
    /// `max_completion_tokens`, which newer models of OpenAI require.
    CompletionTokens,
}

impl Limit {
    fn name(self) -> &'static str {
        match self {
            Self::Tokens => "max_tokens",
            Self::CompletionTokens => "max_completion_tokens",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Tokens => Self::CompletionTokens,
            Self::CompletionTokens => Self::Tokens,
        }
    }
}

impl Quirks {
    /// Returns the initial assumption for a provider: OpenAI has renamed the limit, most compatible providers have not.
    pub(super) fn expected(provider: &Provider) -> Self {
        let host = provider
            .base_url
            .parse::<http::Uri>()
            .ok()
            .and_then(|uri| uri.host().map(str::to_ascii_lowercase));
        let is_open_ai =
            host.is_some_and(|host| host == "api.openai.com" || host.ends_with(".openai.azure.com"));
        let limit = if is_open_ai { Limit::CompletionTokens } else { Limit::Tokens };
        Self { limit, ..Self::default() }
    }

    /// Learns from an error. Returns whether something new was learned. Nothing is learned twice, so retries end.
    pub(super) fn learn(&mut self, status: StatusCode, provider_error: &ProviderError) -> bool {
        if !matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) {
            return false;
        }
        let before = *self;
        if !self.knows_limit && provider_error.rejects(self.limit.name()) {
            self.limit = self.limit.other();
            self.knows_limit = true;
        } else if provider_error.rejects("temperature") {
            self.no_temperature = true;
        } else if provider_error.rejects("stop") {
            self.no_stops = true;
        }
        *self != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider_error(param: &str, code: &str, message: &str) -> ProviderError {
        ProviderError::read(
            format!(r#"{{"error":{{"message":"{message}","param":{param},"code":{code},"type":"invalid_request_error"}}}}"#)
                .as_bytes(),
        )
    }

    #[test]
    fn the_name_of_the_limit_is_guessed_by_the_host() {
        let expected = |url: &str| {
            Quirks::expected(&Provider::open_ai("p").base_url(url)).limit == Limit::CompletionTokens
        };
        assert!(expected("https://api.openai.com/v1"));
        assert!(expected("https://us.openai.azure.com/openai/v1"));
        assert!(!expected("http://localhost:11434/v1"));
        assert!(!expected("https://api.openai.com.evil.example/v1"));
    }

    #[test]
    fn a_refused_parameter_is_learned_once() {
        let mut quirks = Quirks::default();
        let bad = StatusCode::BAD_REQUEST;
        let limit = provider_error(
            r#""max_tokens""#,
            r#""unsupported_parameter""#,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        );
        assert!(!quirks.learn(StatusCode::INTERNAL_SERVER_ERROR, &limit));
        assert!(quirks.learn(bad, &limit) && quirks.limit == Limit::CompletionTokens);
        let back = provider_error("null", "null", "Unrecognized parameter `max_completion_tokens`");
        assert!(!quirks.learn(bad, &back) && quirks.limit == Limit::CompletionTokens);
        let temperature = provider_error(
            r#""temperature""#,
            r#""unsupported_value""#,
            "Unsupported value: 'temperature' does not support 0.1 with this model. Only the default (1) value is supported.",
        );
        assert!(quirks.learn(bad, &temperature) && quirks.no_temperature);
        assert!(!quirks.learn(bad, &temperature));
        let stop =
            provider_error("null", "null", "Unsupported parameter: 'stop' is not supported with this model.");
        assert!(quirks.learn(bad, &stop) && quirks.no_stops);
        let other = provider_error("null", "null", "`temperature` is deprecated for this model.");
        let mut quirks = Quirks::default();
        assert!(quirks.learn(bad, &other) && quirks.no_temperature);
        for message in ["max_tokens is too large: 100000", "messages: text is not supported here", "stop it"]
        {
            assert!(!quirks.learn(bad, &provider_error("null", "null", message)), "{message}");
        }
    }
}
