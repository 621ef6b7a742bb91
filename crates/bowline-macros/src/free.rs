//! `#[tool]`, `#[prompt]` and `#[resource]` on functions outside of an `impl` block.

use crate::{docs, entry, handler, kind::Kind, options::Options, parameters::Parameters};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Attribute, Error, FnArg, Ident, ItemFn, Result, Visibility};

pub(crate) fn expand(kind: Kind, arguments: TokenStream, item: &TokenStream) -> TokenStream {
    let Ok(function) = syn::parse2::<ItemFn>(item.clone()) else {
        let reason = format!("`#[{}]` goes on a function", kind.attribute());
        let error = Error::new_spanned(item, reason).to_compile_error();
        return quote!(#error #item);
    };
    if let Some(receiver) = function.sig.receiver() {
        let reason = "`self` needs `#[tools]` on the `impl` block around this function";
        return misplaced(&Error::new_spanned(receiver, reason), function.clone());
    }
    let value = value(&function.vis, &function.sig.ident, &function.attrs);
    match implementation(kind, arguments, &function) {
        Ok(implementation) => quote!(#value #implementation),
        Err(error) => {
            // The name stays known and registrable, so that this error is the only one.
            let error = error.to_compile_error();
            let conversion = conversion(kind, &function.sig.ident, &quote!(::core::unreachable!()));
            quote!(#error #value #conversion)
        }
    }
}

/// A method, which stays one.
fn misplaced(error: &Error, mut method: ItemFn) -> TokenStream {
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(parameter) = input {
            parameter.attrs.clear();
        }
    }
    let error = error.to_compile_error();
    quote!(#error #method)
}

/// The value that the name of the function stands for.
fn value(visibility: &Visibility, ident: &Ident, attributes: &[Attribute]) -> TokenStream {
    let attributes = attributes.iter().filter(|attribute| docs::is_doc(attribute) || is_condition(attribute));
    quote! {
        #(#attributes)*
        #[allow(non_camel_case_types, reason = "it is used as a function")]
        #[derive(::core::clone::Clone, ::core::marker::Copy, ::core::fmt::Debug)]
        #visibility struct #ident;
    }
}

fn is_condition(attribute: &Attribute) -> bool {
    attribute.path().is_ident("cfg")
}

fn conversion(kind: Kind, ident: &Ident, entry: &TokenStream) -> TokenStream {
    let (conversion, method) = kind.conversion();
    let builder = kind.builder();
    quote! {
        #[automatically_derived]
        impl ::bowline::__private::#conversion for #ident {
            fn #method(self) -> ::bowline::__private::#builder {
                #entry
            }
        }
    }
}

fn implementation(kind: Kind, arguments: TokenStream, function: &ItemFn) -> Result<TokenStream> {
    let options = Options::parse(kind, arguments)?;
    // Within the block below the name is that of the function itself, so that its own body sees no difference.
    let mut inner = function.clone();
    inner.vis = Visibility::Inherited;
    inner.attrs.retain(|attribute| !docs::is_doc(attribute));
    inner.attrs.push(handler::lints());
    let parameters = Parameters::take(kind, &mut inner.sig)?;
    let ident = &function.sig.ident;
    let builder = entry::builder(kind, ident, &function.attrs, &options, &parameters)?;
    let values = &parameters.values;
    let names = handler::closure_parameters(&parameters);
    let closure = quote!(|#names| #ident(#(#values),*));
    let entry = handler::hand(kind, &builder, &inner.sig, &parameters, &options, &closure)?;
    let conversion = conversion(kind, ident, &entry);
    let callable = callable(&inner, &parameters);
    let struct_of_arguments = handler::arguments(&parameters);
    let conditions = function.attrs.iter().filter(|attribute| is_condition(attribute));
    // A parameter may have the name of another tool, which no pattern could bind if it were not for these.
    let shadows = handler::bound(&parameters).into_iter().filter(|bound| *bound != ident);
    Ok(quote! {
        #(#conditions)*
        const _: () = {
            #(
                #[allow(dead_code, non_snake_case, reason = "it only takes the place of a value of this name")]
                fn #shadows() {}
            )*
            #inner
            #struct_of_arguments
            #callable
            #conversion
        };
    })
}

/// Keeps the value callable as the function that was written.
fn callable(function: &ItemFn, parameters: &Parameters) -> TokenStream {
    let ident = &function.sig.ident;
    let types = &parameters.types;
    let output = handler::output(&function.sig);
    let (target, pointer) = if function.sig.asyncness.is_some() {
        let names: Vec<Ident> = (0..types.len()).map(|index| format_ident!("__{index}")).collect();
        (
            quote!(fn(#(#types),*) -> ::bowline::__private::BoxFuture<'static, #output>),
            quote!(|#(#names),*| ::std::boxed::Box::pin(#ident(#(#names),*))),
        )
    } else {
        (quote!(fn(#(#types),*) -> #output), quote!(#ident))
    };
    quote! {
        #[automatically_derived]
        impl ::core::ops::Deref for #ident {
            type Target = #target;

            fn deref(&self) -> &Self::Target {
                const FUNCTION: #target = #pointer;
                &FUNCTION
            }
        }
    }
}
