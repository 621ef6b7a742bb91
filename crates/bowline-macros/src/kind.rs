//! What a function becomes: a tool, a prompt or a resource.

use proc_macro2::Span;
use syn::{Attribute, Ident};

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
}

impl Kind {
    /// Returns the kind that an attribute names, also by a path such as `bowline::tool`.
    pub(crate) fn of(attribute: &Attribute) -> Option<Self> {
        let segment = attribute.path().segments.last()?;
        [Self::Tool, Self::Prompt, Self::Resource].into_iter().find(|kind| segment.ident == kind.attribute())
    }

    pub(crate) fn attribute(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Returns the name of the builder type.
    pub(crate) fn builder(self) -> Ident {
        let name = match self {
            Self::Tool => "Tool",
            Self::Prompt => "Prompt",
            Self::Resource => "Resource",
        };
        Ident::new(name, Span::call_site())
    }

    /// Returns the name of the function that returns the builder: `tool` in `add::tool()`.
    pub(crate) fn constructor(self) -> Ident {
        Ident::new(self.attribute(), Span::call_site())
    }

    /// Returns the name of the method that adds the builder to a set of entries.
    pub(crate) fn adder(self) -> Ident {
        let name = match self {
            Self::Tool => "add_tool",
            Self::Prompt => "add_prompt",
            Self::Resource => "add_resource",
        };
        Ident::new(name, Span::call_site())
    }
}
