//! What keeps programs running, and monitors them.

use crate::catalog::{CRUD, Kind, Object, Style, service};

pub(super) static KINDS: [Kind; 2] = [
    Kind {
        services: &[
            service("datadog", "Datadog", Style::Snake, 1, &[("silence", "downtime")]),
            service("grafana", "Grafana", Style::Kebab, 0, &[("monitor", "alert rule")]),
            service(
                "newrelic",
                "New Relic",
                Style::Camel,
                2,
                &[("monitor", "alert condition"), ("silence", "muting rule")],
            ),
        ],
        objects: [
            Object("dashboard", "charts on one page", "title widgets", CRUD),
            Object("monitor", "a condition that raises an alarm", "query threshold notify", CRUD),
            Object(
                "metric",
                "a measured value over time",
                "name tags from",
                [
                    "search",
                    "query=Read the values of {a} for a time range.",
                    "submit=Send data points.",
                    "describe=Unit and type of {a}.",
                    "delete",
                ],
            ),
            Object(
                "log",
                "lines that programs write",
                "query from until",
                [
                    "search",
                    "tail=Follow log lines as they arrive.",
                    "aggregate=Count log lines by a field.",
                    "archive=Move old logs to cheap storage.",
                    "export=Export logs to a file.",
                ],
            ),
            Object(
                "incident",
                "an outage that people work on",
                "title severity commander",
                [
                    "list",
                    "get",
                    "declare=Declare {a} and notify who is on call.",
                    "acknowledge=Say that somebody looks after {a}.",
                    "resolve=Close {a}.",
                ],
            ),
            Object(
                "trace",
                "the path of a request through services",
                "service duration status",
                [
                    "search",
                    "get",
                    "compare=Compare two traces.",
                    "flamegraph=Show where the time of {a} went.",
                    "export=Export {a}.",
                ],
            ),
            Object("service level objective", "a target for reliability", "target window", CRUD),
            Object("silence", "a time without alarms", "scope starts ends", CRUD),
            Object("annotation", "a mark on charts, such as a deployment", "text time tags", CRUD),
            Object(
                "synthetic check",
                "a robot that tests a site from outside",
                "url frequency locations",
                ["list", "get", "create", "trigger=Run {a} now.", "delete"],
            ),
        ],
    },
    Kind {
        services: &[
            service("kubernetes", "Kubernetes", Style::Snake, 0, &[]),
            service(
                "nomad",
                "Nomad",
                Style::Kebab,
                2,
                &[("pod", "allocation"), ("deployment", "job"), ("job", "batch job")],
            ),
            service(
                "docker",
                "Docker",
                Style::Camel,
                1,
                &[("pod", "container"), ("deployment", "stack"), ("config map", "config")],
            ),
        ],
        objects: [
            Object(
                "pod",
                "a running program with its surroundings",
                "name image",
                [
                    "list",
                    "get",
                    "logs=Print what {a} wrote to standard output.",
                    "exec=Run a command inside {a}.",
                    "delete",
                ],
            ),
            Object(
                "deployment",
                "a program with a number of copies",
                "image replicas",
                [
                    "list",
                    "get",
                    "scale=Set the number of replicas of {a}.",
                    "restart=Restart all copies of {a}, one after another.",
                    "rollback=Go back to the revision before.",
                ],
            ),
            Object("service", "a stable address for a program", "port selector", CRUD),
            Object("namespace", "a part of the cluster", "name quota", CRUD),
            Object("secret", "a password, key or certificate for programs", "name data", CRUD),
            Object("config map", "settings for programs", "name data", CRUD),
            Object(
                "node",
                "a machine of the cluster",
                "labels taints",
                [
                    "list",
                    "get",
                    "cordon=Let nothing new start on {a}.",
                    "drain=Move everything off {a}.",
                    "label=Put labels on {a}.",
                ],
            ),
            Object(
                "volume",
                "disk space that outlives programs",
                "size class",
                ["list", "get", "create", "resize=Make {a} larger.", "delete"],
            ),
            Object(
                "job",
                "a program that runs to its end",
                "image schedule",
                ["list", "get", "run=Run {a} at once.", "suspend=Keep {a} from running.", "delete"],
            ),
            Object(
                "image",
                "what a program is started from",
                "tag digest",
                [
                    "list",
                    "pull=Download {a} to a machine.",
                    "push=Upload {a} to a registry.",
                    "scan=Look for known vulnerabilities in {a}.",
                    "delete",
                ],
            ),
        ],
    },
];
