//! Writes the builder call for a function: name, description, options.

use crate::{docs, kind::Kind, options::Options, parameters::Parameters, template};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Ident, LitStr, Result, ext::IdentExt};

/// Writes the builder call up to its handler.
pub(crate) fn builder(
    kind: Kind,
    ident: &Ident,
    attributes: &[Attribute],
    options: &Options,
    parameters: &Parameters,
) -> Result<TokenStream> {
    let name = match &options.name {
        Some(name) => name.clone(),
        None => LitStr::new(&ident.unraw().to_string(), ident.span()),
    };
    if kind == Kind::Tool {
        check_name(&name)?;
    }
    let builder = kind.builder();
    let uri = match &options.uri {
        Some(uri) => {
            template::check(uri, &parameters.input)?;
            Some(quote!(#uri,))
        }
        None => None,
    };
    let description = docs::description(attributes).map(|text| quote!(.description(#text)));
    let calls = &options.calls;
    let completers = parameters.completers.iter().map(|(name, function)| quote!(.complete(#name, #function)));
    Ok(quote!(::bowline::__private::#builder::new(#uri #name) #description #calls #(#completers)*))
}

/// Checks the rules for names at compile time.
fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    if text.is_empty() || text.len() > 128 {
        return Err(Error::new(name.span(), "tool names must have 1 to 128 characters"));
    }
    match text.chars().find(|character| !allowed(*character)) {
        Some(character) => Err(Error::new(
            name.span(),
            format!(
                "invalid character `{character}` in the tool name; expected letters, digits, `_`, `-` or `.`"
            ),
        )),
        None => Ok(()),
    }
}
