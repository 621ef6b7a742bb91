//! Writes the handler of a function and passes it to the builder.

use crate::{
    docs,
    kind::Kind,
    options::Options,
    parameters::{Input, Parameters},
};
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::{Attribute, Error, Result, ReturnType, Signature, Type, spanned::Spanned};

/// Returns the return type of a function.
pub(crate) fn output(signature: &Signature) -> Type {
    match &signature.output {
        ReturnType::Default => syn::parse_quote_spanned!(signature.ident.span()=> ()),
        ReturnType::Type(_, ty) => (**ty).clone(),
    }
}

/// Allows lints that the fixed signature of a handler can trigger.
pub(crate) fn lints() -> Attribute {
    syn::parse_quote!(#[allow(clippy::needless_pass_by_value, reason = "arguments are decoded for this call alone")])
}

/// Writes the struct of the parameters.
pub(crate) fn arguments(parameters: &Parameters) -> TokenStream {
    let Input::Fields(fields) = &parameters.input else { return TokenStream::new() };
    // For a type without `#[data]`, adds our own error to those of serde. Attributes may replace the traits.
    let plain = fields.iter().filter(|field| field.attributes.iter().all(docs::is_doc));
    let checks = plain.map(|field| {
        let ty = &field.ty;
        quote_spanned!(ty.span()=> ::bowline::__private::argument::<#ty>())
    });
    let fields = fields.iter().map(|field| {
        let (ident, ty, attributes) = (&field.ident, &field.ty, &field.attributes);
        quote!(#(#attributes)* #ident: #ty)
    });
    quote! {
        const _: fn() = || { #(#checks;)* };
        #[derive(::bowline::__private::serde::Deserialize, ::bowline::__private::schemars::JsonSchema)]
        #[serde(crate = "::bowline::__private::serde")]
        #[schemars(crate = "::bowline::__private::schemars")]
        struct __Arguments { #(#fields),* }
    }
}

/// Passes `function`, a closure, to a builder.
///
/// The types are explicit, so that a wrong one is reported once, where it is written.
pub(crate) fn hand(
    kind: Kind,
    builder: &TokenStream,
    signature: &Signature,
    parameters: &Parameters,
    options: &Options,
    function: &TokenStream,
) -> Result<TokenStream> {
    let output = output(signature);
    let is_async = signature.asyncness.is_some();
    let blocking = match options.blocking {
        Some(span) if is_async => {
            let reason = "`blocking` is for a function that is not async; an async one moves such work to a thread itself";
            return Err(Error::new(span, reason));
        }
        Some(_) => Some(quote!(.blocking())),
        None => None,
    };
    let suffix = match (&parameters.input, is_async) {
        (Input::Nothing, false) => "",
        (Input::Nothing, true) => "_async",
        (Input::Fields(_) | Input::Whole(_), false) => "_of",
        (Input::Fields(_) | Input::Whole(_), true) => "_of_async",
    };
    let helper = format_ident!("{}{suffix}", kind.attribute(), span = signature.ident.span());
    let arguments = match &parameters.input {
        Input::Nothing => None,
        Input::Fields(_) => Some(quote!(__Arguments,)),
        Input::Whole(ty) => Some(quote_spanned!(ty.span()=> #ty,)),
    };
    let future = is_async.then(|| quote!(, _));
    Ok(quote!(::bowline::__private::#helper::<#arguments #output #future>(#builder, #function) #blocking))
}

/// Writes the parameters of the closure.
pub(crate) fn closure_parameters(parameters: &Parameters) -> TokenStream {
    match parameters.input {
        Input::Nothing => quote!(__ctx),
        Input::Fields(_) | Input::Whole(_) => quote!(__ctx, __args),
    }
}
