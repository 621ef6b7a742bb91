//! Where data is kept: in buckets and in databases.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 2] = [
    Kind {
        services: &[
            service("s3", "Amazon S3", Style::Snake, 0, &[]),
            service("gcs", "Google Cloud Storage", Style::Camel, 1, &[("presigned url", "signed url")]),
            service(
                "azureblob",
                "Azure Blob Storage",
                Style::Kebab,
                2,
                &[
                    ("bucket", "container"),
                    ("object", "blob"),
                    ("object version", "blob version"),
                    ("presigned url", "shared access signature"),
                ],
            ),
        ],
        objects: [
            Object(
                "bucket",
                "a top-level place for data",
                "name region",
                ["list", "get", "create", "empty=Delete everything in {a}.", "delete"],
            ),
            Object(
                "object",
                "stored bytes under a key",
                "key content content_type",
                ["list", "get", "put=Upload {a}.", "copy=Copy {a} to another place.", "delete"],
            ),
            Object(
                "access policy",
                "who may do what",
                "principal actions effect",
                [
                    "get",
                    "set=Replace the {n}.",
                    "simulate=Find out whether somebody has access.",
                    "delete",
                    "list",
                ],
            ),
            Object("lifecycle rule", "what happens to data of a certain age", "prefix days action", CRUD),
            Object(
                "presigned url",
                "a link that works for a limited time without an account",
                "key expires method",
                ["create", "get", "revoke=Make {a} useless.", "list", "delete"],
            ),
            Object(
                "multipart upload",
                "a large upload in pieces",
                "key parts",
                [
                    "list",
                    "start=Begin {a}.",
                    "complete=Finish {a}.",
                    "abort=Give up {a} and free its space.",
                    "get",
                ],
            ),
            Object(
                "object version",
                "an older state of stored data",
                "key version",
                [
                    "list",
                    "get",
                    "restore=Make an older version the current one.",
                    "delete",
                    "undelete=Bring back what was deleted.",
                ],
            ),
            Object(
                "tag set",
                "keys and values to sort data and costs by",
                "key value",
                ["get", "set=Replace the tags.", "merge=Add to the tags.", "delete", "list"],
            ),
            Object("replication", "copying of data to another region", "destination prefix", CRUD),
            Object("event notification", "a message when data changes", "target events", CRUD),
        ],
    },
    Kind {
        services: &[
            service("postgres", "PostgreSQL", Style::Snake, 0, &[]),
            service("mysql", "MySQL", Style::Snake, 1, &[]),
            service("mongodb", "MongoDB", Style::Camel, 2, &[("table", "collection"), ("row", "document")]),
        ],
        objects: [
            Object(
                "table",
                "where records are kept",
                "name columns",
                [
                    "list",
                    "describe=Show the columns and types of {a}.",
                    "create",
                    "alter=Change the structure of {a}.",
                    "drop=Remove {a} with all it holds.",
                ],
            ),
            Object(
                "row",
                "one record",
                "values where",
                [
                    "search",
                    "insert=Insert one or many rows.",
                    "update",
                    "delete",
                    "count=Count what matches a condition.",
                ],
            ),
            Object(
                "query",
                "a statement in the language of the database",
                "statement parameters timeout",
                [
                    "run=Execute {a} and return the result.",
                    "explain=Show the execution plan of {a} and what it costs.",
                    "list",
                    "cancel=Cancel {a} that is running.",
                    "save=Keep {a} under a name.",
                ],
            ),
            Object(
                "index",
                "what makes lookups fast",
                "name columns unique",
                [
                    "list",
                    "get",
                    "create",
                    "rebuild=Rebuild {a} that has grown too large.",
                    "drop=Remove {a}.",
                ],
            ),
            Object("schema", "a namespace for tables", "name owner", CRUD),
            Object("view", "a stored selection", "name definition", CRUD),
            Object("role", "an account that can log in and has privileges", "name password grants", CRUD),
            Object(
                "backup",
                "a copy to restore from",
                "target compression",
                [
                    "list",
                    "get",
                    "create",
                    "restore=Restore the database from {a}.",
                    "verify=Check that {a} is complete.",
                ],
            ),
            Object(
                "migration",
                "a versioned change of the structure",
                "version direction",
                [
                    "list",
                    "apply=Apply pending migrations.",
                    "rollback=Undo the last {n}.",
                    "create",
                    "status=Tell which migrations have run.",
                ],
            ),
            Object(
                "connection",
                "a client that is logged in",
                "user database state",
                [
                    "list",
                    "get",
                    "kill=Terminate {a}.",
                    "limit=Set how many connections are allowed.",
                    "test=Try whether the database can be reached.",
                ],
            ),
        ],
    },
];
