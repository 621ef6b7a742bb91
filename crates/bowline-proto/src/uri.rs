//! Which URIs are well formed, which lie below which, and which ones a URI template stands for.
//!
//! A server announces resource templates and gets concrete URIs back: [`UriTemplate::match_uri`] finds the
//! variables again. A client that fills a template in uses [`UriTemplate::expand`]. [`validate_uri`] and
//! [`is_sub_resource`] answer the questions that reading and subscribing pose.

mod check;
mod expand;
mod matching;
mod percent;
mod scan;
mod template;

pub use check::{UriError, is_safe_page, is_sub_resource, validate_uri};
pub use expand::{ExpandError, Value};
pub use template::{TemplateError, UriTemplate};
