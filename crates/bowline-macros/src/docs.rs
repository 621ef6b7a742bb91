//! Converts doc comments to descriptions.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Expr, ExprLit, Lit, Meta};

pub(crate) fn is_doc(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// Returns the text of the doc comments as an expression.
pub(crate) fn description(attributes: &[Attribute]) -> Option<TokenStream> {
    let mut texts = Vec::new();
    let mut pieces = Vec::new();
    for attribute in attributes.iter().filter(|attribute| is_doc(attribute)) {
        // `#[doc(hidden)]` and similar attributes have no text.
        let Meta::NameValue(pair) = &attribute.meta else { continue };
        match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => texts.push(text.value()),
            other => {
                pieces.extend(text_of(&texts).map(|text| text.to_token_stream()));
                texts.clear();
                pieces.push(other.to_token_stream());
            }
        }
    }
    let text = text_of(&texts);
    if pieces.is_empty() {
        return text.map(|text| text.to_token_stream());
    }
    pieces.extend(text.map(|text| text.to_token_stream()));
    let (first, rest) = pieces.split_first()?;
    Some(quote!(::core::concat!(#first #(, "\n", #rest)*)))
}

/// Returns the lines without their common indentation, or `None` if they are blank.
fn text_of(texts: &[String]) -> Option<String> {
    let lines: Vec<&str> = texts.iter().flat_map(|text| text.split('\n')).map(str::trim_end).collect();
    let indentation = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let shared = lines.iter().filter(|line| !line.is_empty()).map(indentation).min().unwrap_or(0);
    let lines: Vec<&str> = lines.iter().map(|line| line.get(shared..).unwrap_or_default()).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::description;
    use syn::{ItemFn, parse_quote};

    fn check(item: &ItemFn, expected: Option<&str>) {
        assert_eq!(description(&item.attrs).map(|tokens| tokens.to_string()).as_deref(), expected);
    }

    #[test]
    fn lines_lose_the_indentation_they_share() {
        let item = parse_quote! {
            /// First.
            ///
            ///   - second
            fn f() {}
        };
        check(&item, Some(r#""First.\n\n  - second""#));
    }

    #[test]
    fn blank_comments_are_ignored() {
        check(
            &parse_quote!(
                fn f() {}
            ),
            None,
        );
        check(
            &parse_quote!(
                #[doc(hidden)]
                #[doc = " "]
                fn f() {}
            ),
            None,
        );
    }

    #[test]
    fn included_files_are_joined_when_compiled() {
        let item = parse_quote!(
            #[doc = "See:"]
            #[doc = include_str!("f.md")]
            fn f() {}
        );
        check(&item, Some(r#":: core :: concat ! ("See:" , "\n" , include_str ! ("f.md"))"#));
    }
}
