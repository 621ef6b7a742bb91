//! Name, version and icons of a client or server.

use crate::adapt::Adapt;
use crate::record::{open_enum, record};
use crate::revision::Revision;

record! {
    /// A client or server.
    pub struct Implementation {
        /// Programmatic name.
        required name: String = "name",
        /// Display name.
        optional title: String = "title",
        /// Version.
        required version: String = "version",
        /// Description.
        optional description: String = "description",
        /// Icons.
        default icons: Vec<Icon> = "icons",
        /// Website.
        optional website_url: String = "websiteUrl",
    }
}

record! {
    /// An icon of a tool, resource, prompt, client or server.
    pub struct Icon {
        /// Location: an `https:` or `data:` URI.
        required src: String = "src",
        /// Media type, if the source does not provide it.
        optional mime_type: String = "mimeType",
        /// Suitable sizes, such as `48x48` or `any`.
        default sizes: Vec<String> = "sizes",
        /// Background that it is designed for.
        optional theme: IconTheme = "theme",
    }
}

open_enum! {
    /// Background that an icon is designed for.
    pub enum IconTheme {
        /// A light background.
        Light = "light",
        /// A dark background.
        Dark = "dark",
    }
}

impl Adapt for Implementation {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_06_18 {
            self.title = None;
        }
        if to < Revision::V2025_11_25 {
            self.description = None;
            self.icons.clear();
            self.website_url = None;
        }
    }
}
