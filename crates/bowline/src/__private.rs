//! Items used by the code that the attributes generate. They may change at any time.

pub use schemars;
pub use serde;

#[cfg(feature = "server")]
pub use bowline_server::{Entries, Prompt, Resource, Tool, Toolset};
#[cfg(feature = "server")]
pub use handing::*;

/// Passes a function to its builder, with one variant per kind of function.
///
/// Each is `builder.handler(function)` with explicit types, so that a wrong type is reported on its own, where the author
/// wrote it. The names are complete words because the compiler quotes them.
#[cfg(feature = "server")]
mod handing {
    use bowline_server::{Ctx, FromJson, IntoContents, IntoOutput, IntoPrompt, Prompt, Resource, Tool};
    use std::future::Future;

    /// Checks the type of a parameter.
    pub fn argument<Argument: FromJson>() {}

    /// A tool without arguments.
    pub fn tool<Output: IntoOutput>(
        tool: Tool,
        function: impl Fn(Ctx) -> Output + Send + Sync + 'static,
    ) -> Tool {
        tool.handler(function)
    }

    /// An async tool without arguments.
    pub fn tool_async<Output: IntoOutput, F: Future<Output = Output> + Send + 'static>(
        tool: Tool,
        function: impl Fn(Ctx) -> F + Send + Sync + 'static,
    ) -> Tool {
        tool.handler(function)
    }

    /// A tool.
    pub fn tool_of<Args: FromJson, Output: IntoOutput>(
        tool: Tool,
        function: impl Fn(Ctx, Args) -> Output + Send + Sync + 'static,
    ) -> Tool {
        tool.handler(function)
    }

    /// An async tool.
    pub fn tool_of_async<Args: FromJson, Output: IntoOutput, F: Future<Output = Output> + Send + 'static>(
        tool: Tool,
        function: impl Fn(Ctx, Args) -> F + Send + Sync + 'static,
    ) -> Tool {
        tool.handler(function)
    }

    /// A prompt without arguments.
    pub fn prompt<Messages: IntoPrompt>(
        prompt: Prompt,
        function: impl Fn(Ctx) -> Messages + Send + Sync + 'static,
    ) -> Prompt {
        prompt.handler(function)
    }

    /// An async prompt without arguments.
    pub fn prompt_async<Messages: IntoPrompt, F: Future<Output = Messages> + Send + 'static>(
        prompt: Prompt,
        function: impl Fn(Ctx) -> F + Send + Sync + 'static,
    ) -> Prompt {
        prompt.handler(function)
    }

    /// A prompt.
    pub fn prompt_of<Args: FromJson, Messages: IntoPrompt>(
        prompt: Prompt,
        function: impl Fn(Ctx, Args) -> Messages + Send + Sync + 'static,
    ) -> Prompt {
        prompt.handler(function)
    }

    /// An async prompt.
    pub fn prompt_of_async<
        Args: FromJson,
        Messages: IntoPrompt,
        F: Future<Output = Messages> + Send + 'static,
    >(
        prompt: Prompt,
        function: impl Fn(Ctx, Args) -> F + Send + Sync + 'static,
    ) -> Prompt {
        prompt.handler(function)
    }

    /// A resource.
    pub fn resource<Contents: IntoContents>(
        resource: Resource,
        function: impl Fn(Ctx) -> Contents + Send + Sync + 'static,
    ) -> Resource {
        resource.handler(function)
    }

    /// An async resource.
    pub fn resource_async<Contents: IntoContents, F: Future<Output = Contents> + Send + 'static>(
        resource: Resource,
        function: impl Fn(Ctx) -> F + Send + Sync + 'static,
    ) -> Resource {
        resource.handler(function)
    }

    /// A family of resources.
    pub fn resource_of<Args: FromJson, Contents: IntoContents>(
        resource: Resource,
        function: impl Fn(Ctx, Args) -> Contents + Send + Sync + 'static,
    ) -> Resource {
        resource.handler(function)
    }

    /// An async family of resources.
    pub fn resource_of_async<
        Args: FromJson,
        Contents: IntoContents,
        F: Future<Output = Contents> + Send + 'static,
    >(
        resource: Resource,
        function: impl Fn(Ctx, Args) -> F + Send + Sync + 'static,
    ) -> Resource {
        resource.handler(function)
    }
}
