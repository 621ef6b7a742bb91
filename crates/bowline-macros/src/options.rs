//! Parses the arguments of `#[tool(…)]`, `#[prompt(…)]` and `#[resource(…)]`.

use crate::kind::Kind;
use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Error, Expr, Ident, LitBool, LitStr, Result, Token,
    ext::IdentExt,
    parse::{ParseStream, Parser},
};

/// The options of an attribute.
#[derive(Default)]
pub(crate) struct Options {
    /// The URI or template of a resource.
    pub(crate) uri: Option<LitStr>,
    pub(crate) name: Option<LitStr>,
    /// The position of `blocking`, if present.
    pub(crate) blocking: Option<Span>,
    /// Calls of the builder, such as `.title("…")`.
    pub(crate) calls: TokenStream,
}

const TOOL: &[&str] =
    &["name", "title", "read_only", "destructive", "idempotent", "open_world", "scopes", "task", "blocking"];
const PROMPT: &[&str] = &["name", "title", "scopes"];
const RESOURCE: &[&str] = &["name", "title", "mime_type", "scopes"];

impl Options {
    /// Parses the tokens between the parentheses.
    pub(crate) fn parse(kind: Kind, arguments: TokenStream) -> Result<Self> {
        (|input: ParseStream<'_>| Self::parse_in(kind, input)).parse2(arguments)
    }

    fn parse_in(kind: Kind, input: ParseStream<'_>) -> Result<Self> {
        let mut options = Self::default();
        let known = match kind {
            Kind::Tool => TOOL,
            Kind::Prompt => PROMPT,
            Kind::Resource => {
                if !input.peek(LitStr) {
                    let reason = "expected the URI first, as in `#[resource(\"users://{id}\")]`";
                    return Err(Error::new(input.span(), reason));
                }
                options.uri = Some(input.parse()?);
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
                RESOURCE
            }
        };
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key = input.call(Ident::parse_any)?;
            if !known.iter().any(|name| key == name) {
                let reason =
                    format!("`#[{}]` has no argument `{key}`; it takes {}", kind.attribute(), list(known));
                return Err(Error::new(key.span(), reason));
            }
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is given twice")));
            }
            options.set(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "name" => self.name = Some(text(key, input)?),
            "title" | "mime_type" => {
                let text = text(key, input)?;
                self.calls.extend(quote!(.#key(#text)));
            }
            "scopes" => {
                let scopes = scopes(&text(key, input)?)?;
                self.calls.extend(quote!(.scopes([#(#scopes),*])));
            }
            "destructive" | "open_world" => {
                let choice = choice(key, input)?;
                self.calls.extend(quote!(.#key(#choice)));
            }
            "read_only" | "idempotent" => {
                if choice(key, input)? {
                    self.calls.extend(quote!(.#key()));
                }
            }
            "task" => {
                let task = task(input)?;
                self.calls.extend(quote!(.task(#task)));
            }
            _ => self.blocking = choice(key, input)?.then(|| key.span()),
        }
        Ok(())
    }
}

fn text(key: &Ident, input: ParseStream<'_>) -> Result<LitStr> {
    let wrong = |span| Error::new(span, format!("expected text, as in `{key} = \"…\"`"));
    input.parse::<Token![=]>().map_err(|_| wrong(key.span()))?;
    input.parse().map_err(|_| wrong(input.span()))
}

/// Parses how calls become tasks: an expression, or nothing for the default.
fn task(input: ParseStream<'_>) -> Result<TokenStream> {
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok(quote!(::core::default::Default::default()));
    }
    let wrong = |error: Error| {
        Error::new(error.span(), "expected how calls become tasks, as in `task = Task::later().required()`")
    };
    Ok(input.parse::<Expr>().map_err(wrong)?.to_token_stream())
}

/// Splits a text into scopes at spaces.
fn scopes(text: &LitStr) -> Result<Vec<LitStr>> {
    let is_part = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    let value = text.value();
    let scopes: Vec<LitStr> = value.split(' ').map(|scope| LitStr::new(scope, text.span())).collect();
    if value.split(' ').any(|scope| scope.is_empty() || !scope.bytes().all(is_part)) {
        let reason =
            "expected scopes with one space between them, as in `scopes = \"notes:read notes:write\"`";
        return Err(Error::new(text.span(), reason));
    }
    Ok(scopes)
}

/// Parses a boolean. A name without a value means `true`.
fn choice(key: &Ident, input: ParseStream<'_>) -> Result<bool> {
    if input.parse::<Option<Token![=]>>()?.is_none() {
        return Ok(true);
    }
    let wrong = |_| Error::new(input.span(), format!("expected `true` or `false`, as in `{key} = false`"));
    Ok(input.parse::<LitBool>().map_err(wrong)?.value)
}

fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Options};
    use proc_macro2::TokenStream;
    use quote::quote;

    fn check(kind: Kind, arguments: TokenStream, expected: &str) {
        let told = match Options::parse(kind, arguments) {
            Ok(options) => options.calls.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn options_become_calls_of_the_builder() {
        check(Kind::Tool, quote!(), "");
        check(
            Kind::Tool,
            quote!(title = "T", read_only, destructive = false, idempotent = false, open_world),
            r#". title ("T") . read_only () . destructive (false) . open_world (true)"#,
        );
        check(Kind::Resource, quote!("a://b", mime_type = "text/plain",), r#". mime_type ("text/plain")"#);
        check(
            Kind::Tool,
            quote!(task, read_only),
            ". task (:: core :: default :: Default :: default ()) . read_only ()",
        );
        check(Kind::Tool, quote!(task = Task::later().required()), ". task (Task :: later () . required ())");
        check(Kind::Prompt, quote!(scopes = "a:b c"), r#". scopes (["a:b" , "c"])"#);
        check(Kind::Resource, quote!("a://b", scopes = "x"), r#". scopes (["x"])"#);
    }

    #[test]
    fn wrong_options_are_reported() {
        check(
            Kind::Prompt,
            quote!(read_only),
            "`#[prompt]` has no argument `read_only`; it takes `name`, `title` and `scopes`",
        );
        check(Kind::Tool, quote!(name = "a", name = "b"), "`name` is given twice");
        check(Kind::Tool, quote!(name), "expected text, as in `name = \"…\"`");
        check(Kind::Tool, quote!(title = 1), "expected text, as in `title = \"…\"`");
        check(Kind::Tool, quote!(destructive = 1), "expected `true` or `false`, as in `destructive = false`");
        check(
            Kind::Resource,
            quote!(name = "a"),
            "expected the URI first, as in `#[resource(\"users://{id}\")]`",
        );
        check(Kind::Tool, quote!(read_only idempotent), "expected `,`");
        check(
            Kind::Tool,
            quote!(task =),
            "expected how calls become tasks, as in `task = Task::later().required()`",
        );
        for wrong in ["", " a", "a  b", "caf\u{e9}", "a\"b"] {
            check(
                Kind::Tool,
                quote!(scopes = #wrong),
                "expected scopes with one space between them, as in `scopes = \"notes:read notes:write\"`",
            );
        }
    }
}
