//! The attribute macros of Bowline, re-exported by the crate `bowline`.
//!
//! `#[tool]`, `#[prompt]` and `#[resource]` write the builder call that could have been written by hand; `#[tools]` does
//! so for the methods of a state; `#[data]` derives what arguments and results need. None of them adds behavior.

mod data;
mod docs;
mod entry;
mod free;
mod handler;
mod kind;
mod options;
mod parameters;
mod template;
mod tools;

use kind::Kind;
use proc_macro::TokenStream;

/// Makes a function a tool.
///
/// The doc comment becomes the description. Each parameter becomes a property of the arguments, with its own doc comment
/// as description, and keeps attributes of serde and schemars; an `Option` may be left out. A parameter of type `Ctx` is
/// the context of the call, in any position. The function may be async or not. `name::tool()` returns the
/// [`Tool`](../bowline/server/struct.Tool.html), to be registered as it is or changed further.
///
/// ```
/// use bowline::prelude::*;
///
/// /// Repeat a text.
/// #[tool(title = "Repeat", read_only)]
/// fn repeat(
///     /// What to repeat.
///     text: String,
///     /// How often.
///     #[serde(default)]
///     #[schemars(range(max = 10))]
///     times: usize,
/// ) -> String {
///     text.repeat(times)
/// }
///
/// assert_eq!(repeat("ho".into(), 2), "hoho");
/// let server = Server::new("demo").tool(repeat::tool());
/// ```
///
/// Arguments: `name = "…"` (the function's name otherwise), `title = "…"`, `read_only`, `destructive = false`,
/// `idempotent`, `open_world = false`, `scopes = "notes:read notes:write"` for the scopes of the access token that a call
/// needs, and `blocking` for a function that would hold up others.
///
/// A struct can stand for all the arguments: as the only parameter besides `Ctx`, written as a pattern
/// (`Add { a, b }: Add`) or marked `#[args] add: Add`.
///
/// The function stays a function. Next to it the macro writes a type of the same name, whose only purpose is
/// `name::tool()`; an import of the function brings it along. So a module or type next to the function cannot have its
/// name, and inside the function a crate of that name is written `::name`.
#[proc_macro_attribute]
pub fn tool(arguments: TokenStream, item: TokenStream) -> TokenStream {
    free::expand(Kind::Tool, arguments.into(), &item.into()).into()
}

/// Makes the marked methods of an `impl` block tools, prompts and resources that share a state.
///
/// Methods marked `#[tool]`, `#[prompt]` or `#[resource("…")]` take `&self` and otherwise what such functions take.
/// Other items are not changed. `Server::with` adds everything that the state offers; the state lives as long as the server.
/// A method that keeps the state for longer takes `self: Arc<Self>`.
///
/// ```
/// use bowline::prelude::*;
/// use std::sync::atomic::{AtomicI64, Ordering};
///
/// #[derive(Default)]
/// struct Counter(AtomicI64);
///
/// #[tools]
/// impl Counter {
///     /// Add to the counter.
///     #[tool]
///     fn add(
///         &self,
///         /// How much.
///         amount: i64,
///     ) -> i64 {
///         self.0.fetch_add(amount, Ordering::Relaxed) + amount
///     }
///
///     /// The value of the counter.
///     #[resource("counter://value")]
///     fn value(&self) -> String {
///         self.0.load(Ordering::Relaxed).to_string()
///     }
/// }
///
/// let server = Server::new("demo").with(Counter::default());
/// ```
///
/// A type may have several such blocks. One of them includes the others by name:
///
/// ```
/// use bowline::prelude::*;
///
/// struct Shop;
///
/// #[tools(include(orders))]
/// impl Shop {
///     #[tool]
///     fn open(&self) -> bool {
///         true
///     }
/// }
///
/// #[tools(part = orders)]
/// impl Shop {
///     #[tool]
///     fn order(&self, item: String) -> String {
///         format!("ordered {item}")
///     }
/// }
///
/// let server = Server::new("shop").with(Shop);
/// ```
#[proc_macro_attribute]
pub fn tools(arguments: TokenStream, item: TokenStream) -> TokenStream {
    tools::expand(&arguments.into(), &item.into()).into()
}

/// Makes a function a prompt.
///
/// It is written like a [`macro@tool`] and returns text or messages. Arguments: `name = "…"`, `title = "…"`,
/// `scopes = "…"`.
///
/// A parameter marked `#[complete(function)]` gets its suggestions from `fn(Ctx, CompletionRequest) -> Vec<String>`. The
/// function may be async, return a `Result`, and leave out `Ctx`. In a `#[tools]` block it may be a method of the same block
/// that takes `&self`: `#[complete(Self::cities)]`. Clients send arguments as text, so a list or a map is a compile error.
///
/// ```
/// use bowline::prelude::*;
///
/// fn languages(typing: CompletionRequest) -> Vec<&'static str> {
///     ["rust", "ruby"].into_iter().filter(|name| name.starts_with(&typing.value)).collect()
/// }
///
/// /// Review some code.
/// #[prompt(title = "Code review")]
/// fn review(
///     /// What to review.
///     code: String,
///     /// What it is written in.
///     #[complete(languages)]
///     language: Option<String>,
/// ) -> String {
///     format!("Review this {} code:\n{code}", language.unwrap_or_default())
/// }
///
/// let server = Server::new("demo").prompt(review::prompt());
/// ```
#[proc_macro_attribute]
pub fn prompt(arguments: TokenStream, item: TokenStream) -> TokenStream {
    free::expand(Kind::Prompt, arguments.into(), &item.into()).into()
}

/// Makes a function a resource, or a family of them when the URI has variables.
///
/// It is written like a [`macro@tool`] and returns text, bytes or contents. The parameters are the variables of the
/// template, all of them; they may be completed as those of a [`macro@prompt`]. Arguments: the URI, then `name = "…"`
/// (the function's name otherwise), `title = "…"`, `mime_type = "…"`, `scopes = "…"`.
///
/// ```
/// use bowline::prelude::*;
///
/// /// A user of the system.
/// #[resource("users://{id}", mime_type = "text/plain")]
/// async fn user(id: u64) -> Result<String> {
///     Ok(format!("user {id}"))
/// }
///
/// let server = Server::new("demo").resource(user::resource());
/// ```
#[proc_macro_attribute]
pub fn resource(arguments: TokenStream, item: TokenStream) -> TokenStream {
    free::expand(Kind::Resource, arguments.into(), &item.into()).into()
}

/// Derives what arguments, answers and structured results need: `Serialize`, `Deserialize`, `JsonSchema`, `Debug` and
/// `Clone`.
///
/// Attributes of serde and schemars apply. A trait that a `derive` below it already names is left to that.
///
/// ```
/// use bowline::prelude::*;
///
/// #[data]
/// #[derive(PartialEq)]
/// #[serde(rename_all = "camelCase")]
/// struct Forecast {
///     /// Degrees Celsius.
///     high_temperature: f64,
/// }
///
/// #[tool]
/// fn forecast(city: String) -> Json<Forecast> {
///     Json(Forecast { high_temperature: city.len() as f64 })
/// }
/// ```
#[proc_macro_attribute]
pub fn data(arguments: TokenStream, item: TokenStream) -> TokenStream {
    data::expand(&arguments.into(), &item.into()).into()
}
