//! Where people build something together: code, talk and plans.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 3] = [
    Kind {
        services: &[
            service("github", "GitHub", Style::Snake, 0, &[]),
            service(
                "gitlab",
                "GitLab",
                Style::Kebab,
                1,
                &[
                    ("pull request", "merge request"),
                    ("workflow run", "pipeline"),
                    ("gist", "snippet"),
                    ("collaborator", "project member"),
                ],
            ),
            service("bitbucket", "Bitbucket", Style::Camel, 2, &[("workflow run", "pipeline build")]),
        ],
        objects: [
            Object(
                "repository",
                "the home of a code base",
                "name visibility default_branch",
                [
                    "list",
                    "get",
                    "create",
                    "fork=Copy {a} into another account.",
                    "archive=Make {a} read-only.",
                ],
            ),
            Object(
                "issue",
                "a bug or a wish, with labels and assignees",
                "title body labels",
                ["list", "get", "create", "close=Close {a} with an optional reason.", "search"],
            ),
            Object(
                "pull request",
                "a proposed change that awaits review",
                "title base head",
                [
                    "list",
                    "get",
                    "create",
                    "merge=Merge {a} into its target branch.",
                    "review=Submit a review on {a}: approve, comment or request changes.",
                ],
            ),
            Object(
                "branch",
                "a named line of development",
                "name from protected",
                ["list", "get", "create", "compare=Compare two branches and give the diff.", "delete"],
            ),
            Object(
                "commit",
                "a recorded change of files",
                "sha message author",
                [
                    "list",
                    "get",
                    "create",
                    "revert=Create a commit that undoes another.",
                    "status=Set or read the build status of {a}.",
                ],
            ),
            Object("release", "a tagged version with notes and files", "tag notes prerelease", CRUD),
            Object(
                "workflow run",
                "one execution of the continuous integration",
                "ref inputs status",
                [
                    "list",
                    "get",
                    "cancel=Cancel {a} that is in progress.",
                    "rerun=Run the failed jobs of {a} again.",
                    "logs=Download the logs of {a}.",
                ],
            ),
            Object("webhook", "a URL that is called on events", "url events secret", CRUD),
            Object("collaborator", "a person with access", "username role expires", CRUD),
            Object("gist", "a small shared text", "content filename public", CRUD),
        ],
    },
    Kind {
        services: &[
            service("slack", "Slack", Style::Snake, 1, &[("presence", "status")]),
            service("teams", "Microsoft Teams", Style::NounFirst, 0, &[("direct message", "chat")]),
            service("discord", "Discord", Style::Camel, 3, &[("user group", "role")]),
        ],
        objects: [
            Object(
                "channel",
                "a room for a topic",
                "name topic private",
                ["list", "create", "archive=Archive {a} that is no longer used.", "join=Join {a}.", "update"],
            ),
            Object(
                "message",
                "what somebody said in a channel",
                "text channel attachments",
                ["list", "send=Post a message to a channel.", "update", "delete", "search"],
            ),
            Object(
                "thread",
                "the replies to a message",
                "channel root_id text",
                [
                    "list",
                    "get",
                    "reply=Answer in {a}.",
                    "lock=Stop further replies in {a}.",
                    "follow=Get notified about {a}.",
                ],
            ),
            Object(
                "reaction",
                "an emoji below a message",
                "emoji message_id channel",
                ["list", "get", "create", "delete", "count=Count how often each emoji was used."],
            ),
            Object(
                "user group",
                "several people that can be mentioned together",
                "handle members description",
                CRUD,
            ),
            Object(
                "file",
                "a document shared in a conversation",
                "filename content comment",
                [
                    "list",
                    "get",
                    "upload=Upload {a} and share it in a channel.",
                    "share=Make {a} accessible by a public link.",
                    "delete",
                ],
            ),
            Object(
                "reminder",
                "a note that comes back at a time",
                "text time user",
                ["list", "get", "create", "complete=Mark {a} as done.", "delete"],
            ),
            Object(
                "direct message",
                "a private conversation",
                "user text",
                [
                    "list",
                    "get",
                    "send=Send {a} to one person.",
                    "open=Open {a} with several people.",
                    "delete",
                ],
            ),
            Object("emoji", "a custom picture for reactions", "name image alias", CRUD),
            Object(
                "presence",
                "whether somebody is active or away",
                "state text expires",
                [
                    "get",
                    "set=Set the caller's presence and status text.",
                    "clear=Clear the status text.",
                    "snooze=Turn on do not disturb for a while.",
                    "list",
                ],
            ),
        ],
    },
    Kind {
        services: &[
            service("jira", "Jira", Style::Camel, 0, &[("sprint", "sprint")]),
            service(
                "linear",
                "Linear",
                Style::Snake,
                2,
                &[("ticket", "issue"), ("sprint", "cycle"), ("board", "view")],
            ),
            service(
                "asana",
                "Asana",
                Style::Kebab,
                1,
                &[("ticket", "task"), ("epic", "portfolio"), ("time entry", "time entry")],
            ),
        ],
        objects: [
            Object(
                "ticket",
                "a piece of work with an assignee",
                "summary assignee priority",
                ["search", "get", "create", "update", "transition=Move {a} to another status, such as done."],
            ),
            Object("project", "a set of work with a goal", "name lead key", CRUD),
            Object(
                "sprint",
                "a fixed period in which work is done",
                "name starts ends",
                [
                    "list",
                    "get",
                    "start=Start {a} that was planned.",
                    "add_to=Put work into {a}.",
                    "complete=Complete {a} and move what is open.",
                ],
            ),
            Object("comment", "a remark below a piece of work", "body author visibility", CRUD),
            Object("label", "a word to sort work by", "name color", CRUD),
            Object(
                "attachment",
                "a file that belongs to a piece of work",
                "filename content",
                ["list", "get", "create", "delete", "thumbnail=Give a small preview of {a}."],
            ),
            Object("time entry", "how long somebody worked on something", "duration started comment", CRUD),
            Object("epic", "a large piece of work with children", "name children due", CRUD),
            Object("board", "a picture of work in columns", "name columns filter", CRUD),
            Object(
                "status",
                "a step of a workflow",
                "name category order",
                ["list", "get", "create", "reorder=Change the order of statuses.", "delete"],
            ),
        ],
    },
];
