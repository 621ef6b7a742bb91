//! `#[data]`: derives for types that are sent as JSON.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, Item, Path, Token, parse::Parser, punctuated::Punctuated};

const DERIVES: &[(&str, &str)] = &[
    ("Debug", "::core::fmt::Debug"),
    ("Clone", "::core::clone::Clone"),
    ("Serialize", "::bowline::__private::serde::Serialize"),
    ("Deserialize", "::bowline::__private::serde::Deserialize"),
    ("JsonSchema", "::bowline::__private::schemars::JsonSchema"),
];

pub(crate) fn expand(arguments: &TokenStream, item: &TokenStream) -> TokenStream {
    derives(arguments, item.clone()).unwrap_or_else(|error| {
        let error = error.to_compile_error();
        quote!(#error #item)
    })
}

fn derives(arguments: &TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "`#[data]` takes no arguments"));
    }
    let item = syn::parse2::<Item>(item)?;
    let attributes = match &item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        other => return Err(Error::new_spanned(other, "`#[data]` goes on a struct or an enum")),
    };
    let derived: Vec<String> = attributes.iter().flat_map(derived_by).collect();
    let missing: Vec<Path> = DERIVES
        .iter()
        .filter(|(name, _)| !derived.iter().any(|derived| derived == name))
        .map(|(_, path)| syn::parse_str(path))
        .collect::<syn::Result<_>>()?;
    let is_missing = |name: &str| !derived.iter().any(|derived| derived == name);
    let serde = (is_missing("Serialize") && is_missing("Deserialize"))
        .then(|| quote!(#[serde(crate = "::bowline::__private::serde")]));
    let schemars =
        is_missing("JsonSchema").then(|| quote!(#[schemars(crate = "::bowline::__private::schemars")]));
    Ok(quote! {
        #[derive(#(#missing),*)]
        #serde
        #schemars
        #item
    })
}

/// Returns the names in a `#[derive(…)]`.
fn derived_by(attribute: &Attribute) -> Vec<String> {
    let Ok(list) = attribute.meta.require_list() else { return Vec::new() };
    if !list.path.is_ident("derive") {
        return Vec::new();
    }
    let paths =
        Punctuated::<Path, Token![,]>::parse_terminated.parse2(list.tokens.clone()).unwrap_or_default();
    paths.iter().filter_map(|path| Some(path.segments.last()?.ident.to_string())).collect()
}
