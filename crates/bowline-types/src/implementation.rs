//! Who is speaking: the name of a client or server, and icons.

use crate::adapt::Adapt;
use crate::record::{open_enum, record};
use crate::revision::Revision;

record! {
    /// Names a client or a server.
    pub struct Implementation {
        /// The name for programs.
        required name: String = "name",
        /// The name for people.
        optional title: String = "title",
        /// The version of the software.
        required version: String = "version",
        /// What the software does.
        optional description: String = "description",
        /// Pictures to show beside the name.
        default icons: Vec<Icon> = "icons",
        /// Where to read more.
        optional website_url: String = "websiteUrl",
    }
}

record! {
    /// A picture for a tool, resource, prompt or implementation.
    pub struct Icon {
        /// Where the picture is: an `https:` or `data:` URI.
        required src: String = "src",
        /// The media type, where the source does not say it.
        optional mime_type: String = "mimeType",
        /// The sizes it fits, such as `48x48` or `any`.
        default sizes: Vec<String> = "sizes",
        /// The background it is drawn for.
        optional theme: IconTheme = "theme",
    }
}

open_enum! {
    /// The background an icon is drawn for.
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
