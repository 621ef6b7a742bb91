//! Roots: the directories in which a client lets a server work.

use crate::adapt::{Adapt, adapt_message_meta, adapt_meta};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// A directory or file in which the server may work.
    pub struct Root {
        /// Location; always a `file:` URI.
        required uri: String = "uri",
        /// Display name.
        optional name: String = "name",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `roots/list`.
    #[derive(Default)]
    pub struct ListRootsResult {
        /// Type of the result; never written, because this result has no type.
        optional result_type: ResultType = "resultType",
        /// The roots.
        required roots: Vec<Root> = "roots",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl Root {
    /// Creates a root from an absolute path.
    ///
    /// ```
    /// use bowline_types::Root;
    ///
    /// assert_eq!(Root::of_path("/srv/my files").uri, "file:///srv/my%20files");
    /// assert_eq!(Root::of_path(r"C:\work").uri, "file:///C:/work");
    /// assert_eq!(Root::of_path(r"/a\b").uri, "file:///a%5Cb");
    /// ```
    pub fn of_path(path: &str) -> Self {
        const HEX: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
        let mut uri = String::from("file://");
        // A path that does not start with a slash is a Windows path; in other paths a backslash is part of a name.
        let is_windows = !path.starts_with('/');
        if is_windows {
            uri.push('/');
        }
        for byte in path.bytes() {
            match byte {
                b'\\' if is_windows => uri.push('/'),
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                    uri.push(char::from(byte));
                }
                other => uri.extend(['%', HEX[usize::from(other >> 4)], HEX[usize::from(other & 15)]]),
            }
        }
        Self::new(uri)
    }
}

impl Adapt for Root {
    fn adapt(&mut self, to: Revision) {
        adapt_meta(&mut self.meta, to);
    }
}

impl Adapt for ListRootsResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        // No revision has `resultType` here: legacy results lack it, modern answers are bare.
        self.result_type = None;
        self.roots.adapt(to);
    }
}
