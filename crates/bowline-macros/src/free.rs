//! `#[tool]`, `#[prompt]` and `#[resource]` on functions outside of an `impl` block.
//!
//! The function stays as it is. Next to it, in the namespace of types, the macro writes an empty enum of the same name
//! with one function that returns the builder: `add::tool()`. An import of the name brings both.

use crate::{entry, handler, kind::Kind, options::Options, parameters::Parameters};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Error, FnArg, ItemFn, Result};

pub(crate) fn expand(kind: Kind, arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let reason = format!("`#[{}]` goes on a function", kind.attribute());
        let error = Error::new_spanned(item, reason).to_compile_error();
        return quote!(#error #item);
    };
    if let Some(receiver) = function.sig.receiver() {
        let reason = "`self` needs `#[tools]` on the `impl` block around this function";
        let error = Error::new_spanned(receiver, reason).to_compile_error();
        let method = without_parameter_attributes(&function);
        return quote!(#error #method);
    }
    let namespace = namespace(&function);
    match implementation(kind, arguments, &function) {
        Ok(implementation) => quote!(#namespace #implementation),
        Err(error) => {
            // The function stays callable and registrable, so that this is the only error.
            let error = error.to_compile_error();
            let plain = without_parameter_attributes(&function);
            let constructor = constructor(kind, &function, &quote!(::core::unreachable!()));
            quote!(#error #plain #namespace #constructor)
        }
    }
}

/// Removes the attributes that only the macro understands.
fn without_parameter_attributes(function: &ItemFn) -> ItemFn {
    let mut function = function.clone();
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.clear();
        }
    }
    function
}

/// Writes the type with the name of the function.
fn namespace(function: &ItemFn) -> TokenStream {
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let conditions = function.attrs.iter().filter(|attribute| is_condition(attribute));
    quote! {
        #(#conditions)*
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it has the name of the function")]
        #[derive(::core::fmt::Debug)]
        #visibility enum #ident {}
    }
}

fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

/// Writes the function that returns the builder.
fn constructor(kind: Kind, function: &ItemFn, entry: &TokenStream) -> TokenStream {
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let (builder, method) = (kind.builder(), kind.constructor());
    quote! {
        #[automatically_derived]
        impl #ident {
            #visibility fn #method() -> ::bowline::__private::#builder {
                #entry
            }
        }
    }
}

fn implementation(kind: Kind, arguments: TokenStream, function: &ItemFn) -> Result<TokenStream> {
    let options = Options::parse(kind, arguments)?;
    let mut plain = function.clone();
    plain.attrs.push(handler::lints());
    let parameters = Parameters::take(kind, &mut plain.sig)?;
    let ident = &function.sig.ident;
    let builder = entry::builder(kind, ident, &function.attrs, &options, &parameters)?;
    let values = &parameters.values;
    let names = handler::closure_parameters(&parameters);
    let closure = quote!(|#names| #ident(#(#values),*));
    let entry = handler::hand(kind, &builder, &plain.sig, &parameters, &options, &closure)?;
    let constructor = constructor(kind, function, &entry);
    let struct_of_arguments = handler::arguments(&parameters);
    let conditions = function.attrs.iter().filter(|attribute| is_condition(attribute));
    Ok(quote! {
        #plain

        #(#conditions)*
        const _: () = {
            #struct_of_arguments
            #constructor
        };
    })
}
