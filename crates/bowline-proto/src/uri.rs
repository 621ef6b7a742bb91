//! URIs and URI templates.
//!
//! A server lists resource templates and receives URIs: [`UriTemplate::match_uri`] finds the
//! values of the variables. A client expands a template with [`UriTemplate::expand`]. [`validate_uri`] and
//! [`is_sub_resource`] check the URIs of read and subscribe requests.

mod authority;
mod expand;
mod matching;
mod percent;
mod scan;
mod template;
mod validate;

pub use authority::{UrlParts, mask_user};
pub use expand::{ExpandError, Value};
pub use percent::{form_decode, percent_decode, push_form_encoded};
pub use template::{TemplateError, UriTemplate};
pub use validate::{UriError, is_safe_page, is_sub_resource, validate_uri};
