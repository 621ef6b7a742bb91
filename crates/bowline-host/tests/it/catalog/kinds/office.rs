//! What an office has: mail, calendars and documents.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 3] = [
    Kind {
        services: &[
            service("gmail", "Gmail", Style::Snake, 1, &[]),
            service(
                "outlook",
                "Outlook mail",
                Style::Camel,
                0,
                &[("label", "folder"), ("filter", "inbox rule"), ("vacation responder", "automatic reply")],
            ),
            service("fastmail", "Fastmail", Style::NounFirst, 3, &[("label", "mailbox"), ("filter", "rule")]),
        ],
        objects: [
            Object(
                "email",
                "a message in the mailbox",
                "to subject body",
                ["search", "get", "send=Send {a}.", "forward=Forward {a} to somebody else.", "delete"],
            ),
            Object(
                "draft",
                "a message that was not sent yet",
                "to subject body",
                ["list", "get", "create", "send=Send {a}.", "delete"],
            ),
            Object("label", "where messages are sorted into", "name color", CRUD),
            Object(
                "filter",
                "a rule that sorts, stars, archives or deletes incoming mail by itself",
                "from subject action",
                CRUD,
            ),
            Object(
                "attachment",
                "a file inside a message",
                "filename message_id",
                [
                    "list",
                    "download=Download {a}.",
                    "save=Save {a} to the cloud drive.",
                    "scan=Check {a} for malware.",
                    "delete",
                ],
            ),
            Object("contact", "a person in the address book", "name email phone", CRUD),
            Object("signature", "text below every message", "html name", CRUD),
            Object(
                "vacation responder",
                "an answer sent while one is away",
                "text starts ends",
                [
                    "get",
                    "enable=Switch the {n} on.",
                    "disable=Switch the {n} off.",
                    "update",
                    "preview=Show what the {n} would send.",
                ],
            ),
            Object(
                "conversation",
                "all messages with one subject",
                "subject participants",
                [
                    "list",
                    "get",
                    "mute=Ignore {a} from now on.",
                    "archive=Take {a} out of the inbox.",
                    "trash=Throw {a} away.",
                ],
            ),
            Object("alias", "another address of the same mailbox", "address name", CRUD),
        ],
    },
    Kind {
        services: &[
            service("googlecalendar", "Google Calendar", Style::Snake, 0, &[]),
            service("outlookcalendar", "Outlook calendar", Style::Camel, 2, &[]),
            service("calcom", "Cal.com", Style::Kebab, 1, &[("event", "booking")]),
        ],
        objects: [
            Object(
                "event",
                "an appointment with a start and an end",
                "summary starts ends",
                ["list", "get", "create", "update", "delete"],
            ),
            Object("calendar", "a set of appointments", "name time_zone", CRUD),
            Object("attendee", "a person who takes part", "email optional response", CRUD),
            Object(
                "availability",
                "when people are free or busy",
                "people from until",
                [
                    "get",
                    "find=Find times at which all participants are free.",
                    "set=Set working hours.",
                    "block=Mark a time as busy.",
                    "clear=Make a blocked time free again.",
                ],
            ),
            Object(
                "meeting room",
                "a place that can be reserved",
                "capacity building equipment",
                [
                    "list",
                    "get",
                    "book=Reserve {a} for a time.",
                    "release=Give back {a} that was reserved.",
                    "search",
                ],
            ),
            Object("alarm", "a notification ahead of time", "minutes method", CRUD),
            Object(
                "recurring series",
                "appointments that repeat",
                "rule starts until",
                ["list", "get", "create", "update", "cancel=Cancel all that is still to come of {a}."],
            ),
            Object("booking link", "a page where others pick a time", "slug duration", CRUD),
            Object(
                "time zone",
                "the local time of a place",
                "name",
                [
                    "list",
                    "get",
                    "set=Set the {n} of the account.",
                    "convert=Convert a time from one zone to another.",
                    "detect=Tell the {n} of a place.",
                ],
            ),
            Object(
                "invitation",
                "a request to take part",
                "event_id message",
                ["list", "accept=Accept {a}.", "decline=Decline {a}.", "resend=Send {a} again.", "get"],
            ),
        ],
    },
    Kind {
        services: &[
            service("notion", "Notion", Style::Kebab, 2, &[]),
            service("confluence", "Confluence", Style::Camel, 0, &[("workspace", "space")]),
            service(
                "googledocs",
                "Google Docs",
                Style::Snake,
                1,
                &[("page", "document"), ("block", "paragraph")],
            ),
        ],
        objects: [
            Object(
                "page",
                "a written document",
                "title content parent",
                ["search", "get", "create", "update", "move=Move {a} below another."],
            ),
            Object(
                "block",
                "a piece of content such as a heading or a list",
                "type text",
                ["list", "get", "append=Append {a} at the end.", "update", "delete"],
            ),
            Object(
                "comment",
                "a remark on a text",
                "text anchor",
                ["list", "create", "resolve=Mark {a} as dealt with.", "reply=Answer {a}.", "delete"],
            ),
            Object(
                "template",
                "a starting point for new documents",
                "name content",
                ["list", "get", "create", "apply=Create a document from {a}.", "delete"],
            ),
            Object("workspace", "where a team keeps its documents", "name members", CRUD),
            Object(
                "database",
                "a table of documents with properties",
                "title properties",
                ["list", "get", "create", "filter=Query {a} with filters and sorting.", "update"],
            ),
            Object(
                "version",
                "an earlier state of a document",
                "number author",
                [
                    "list",
                    "get",
                    "restore=Go back to an earlier {n}.",
                    "compare=Show the differences between two versions.",
                    "name=Give {a} a name.",
                ],
            ),
            Object(
                "permission",
                "who may read or edit a document",
                "email role",
                [
                    "list",
                    "get",
                    "grant=Give somebody access to a document.",
                    "update",
                    "revoke=Take access away from somebody.",
                ],
            ),
            Object(
                "export",
                "a document in another format",
                "format page_id",
                ["create", "get", "list", "download=Download the finished {n}.", "delete"],
            ),
            Object("bookmark", "a document one wants to find again", "page_id note", CRUD),
        ],
    },
];
