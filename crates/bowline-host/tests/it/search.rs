//! Whether questions find their tools among two thousand.

use crate::catalog::{catalog, products};
use bowline_search::{Entry, Index};
use bowline_types::Tool;

/// A question, and the service, object and operation of the one tool that answers it.
type Question = (&'static str, [&'static str; 3]);

/// The parameters of the index were chosen with these, most of which avoid the words of the tool.
const TUNING: [Question; 80] = [
    ("fork a repo on github", ["github", "repository", "fork"]),
    ("close a stale issue on bitbucket", ["bitbucket", "issue", "close"]),
    ("what is different between two branches in gitlab", ["gitlab", "branch", "compare"]),
    ("publish a new version with release notes on github", ["github", "release", "create"]),
    ("upload a screenshot to teams", ["teams", "file", "upload"]),
    ("set my slack status to away", ["slack", "presence", "set"]),
    ("write to a teammate privately on Microsoft Teams", ["teams", "direct message", "send"]),
    ("kick off the next sprint in jira", ["jira", "sprint", "start"]),
    ("attach a log file to a jira ticket", ["jira", "attachment", "create"]),
    ("copy an object from one s3 bucket to another", ["s3", "object", "copy"]),
    ("who can read this azure container", ["azureblob", "access policy", "simulate"]),
    ("kill a hanging connection in postgres", ["postgres", "connection", "kill"]),
    ("apply the pending schema changes to mysql", ["mysql", "migration", "apply"]),
    ("forward an email in outlook", ["outlook", "email", "forward"]),
    ("save the attachment of a gmail message to my drive", ["gmail", "attachment", "save"]),
    (
        "reserve a conference room for 10 people in google calendar",
        ["googlecalendar", "meeting room", "book"],
    ),
    ("say no to friday's invite in outlook calendar", ["outlookcalendar", "invitation", "decline"]),
    ("start a notion page from the meeting notes template", ["notion", "template", "apply"]),
    ("leave a remark on a paragraph in google docs", ["googledocs", "comment", "create"]),
    ("pause a stripe subscription", ["stripe", "subscription", "pause"]),
    ("when will stripe pay out to our bank account", ["stripe", "payout", "list"]),
    ("hubspot has the same company twice, merge them", ["hubspot", "company", "merge"]),
    ("plan a call with someone in pipedrive", ["pipedrive", "activity", "create"]),
    ("tell everyone I'm looking at the new relic incident", ["newrelic", "incident", "acknowledge"]),
    ("find slow requests in datadog traces", ["datadog", "trace", "search"]),
    ("run the nightly kubernetes job right now", ["kubernetes", "job", "run"]),
    ("grow a docker volume", ["docker", "volume", "resize"]),
    ("change the price of a product in shopify", ["shopify", "product", "update"]),
    ("what do buyers say about this article in magento", ["magento", "review", "list"]),
    ("any storm warnings near Lisbon", ["atlas", "severe weather warning", "list"]),
    ("open a bug report in our GitHub repo about the login page crashing", ["github", "issue", "create"]),
    ("which merge requests are still waiting in gitlab", ["gitlab", "pull request", "list"]),
    ("merge my PR on bitbucket", ["bitbucket", "pull request", "merge"]),
    ("stop a github action run that is stuck", ["github", "workflow run", "cancel"]),
    ("invite a new developer to the gitlab project", ["gitlab", "collaborator", "create"]),
    ("tell the #deploys channel on slack that we are live", ["slack", "message", "send"]),
    ("put a thumbs up on that discord message", ["discord", "reaction", "create"]),
    ("remind me in Slack tomorrow at 9 to call Ana", ["slack", "reminder", "create"]),
    ("log two hours of work on OPS-14 in jira", ["jira", "time entry", "create"]),
    ("put this Linear issue into the next cycle", ["linear", "sprint", "add_to"]),
    ("who is the asana task assigned to", ["asana", "ticket", "get"]),
    ("give me a temporary download link for a file in s3", ["s3", "presigned url", "create"]),
    ("make objects in google cloud storage expire after 30 days", ["gcs", "lifecycle rule", "create"]),
    ("bring back the previous version of a blob in azure", ["azureblob", "object version", "restore"]),
    ("execute a select statement against postgres", ["postgres", "query", "run"]),
    ("why is this MySQL query slow? show me the plan", ["mysql", "query", "explain"]),
    ("speed up lookups on a mongodb collection with an index", ["mongodb", "index", "create"]),
    ("take a backup of the mysql database now", ["mysql", "backup", "create"]),
    ("prepare an answer to Bob in gmail but don't send it yet", ["gmail", "draft", "create"]),
    ("turn on out of office in outlook while I'm on holiday", ["outlook", "vacation responder", "enable"]),
    ("automatically archive newsletters in fastmail", ["fastmail", "filter", "create"]),
    ("what's on my google calendar next tuesday", ["googlecalendar", "event", "list"]),
    (
        "when are Ana and Joe both free? look in the outlook calendar",
        ["outlookcalendar", "availability", "find"],
    ),
    (
        "cancel the weekly standup for good in google calendar",
        ["googlecalendar", "recurring series", "cancel"],
    ),
    ("share the notion page with a colleague", ["notion", "permission", "grant"]),
    ("what changed between two versions of a confluence page", ["confluence", "version", "compare"]),
    ("give the customer their money back in stripe", ["stripe", "refund", "create"]),
    ("a client no longer wants to pay monthly, end it in paypal", ["paypal", "subscription", "cancel"]),
    ("mail this month's bill to a client with square", ["square", "invoice", "send"]),
    ("fight a chargeback in stripe", ["stripe", "dispute", "contest"]),
    ("make a voucher for 20% off in stripe", ["stripe", "coupon", "create"]),
    ("add the woman I met at the fair to hubspot", ["hubspot", "contact", "create"]),
    ("we got the Acme deal! mark it as won in pipedrive", ["pipedrive", "deal", "win"]),
    ("turn a lead into a customer in Salesforce", ["salesforce", "lead", "convert"]),
    ("no alarms during tonight's maintenance please, datadog", ["datadog", "silence", "create"]),
    ("look for error lines of the checkout service in new relic logs", ["newrelic", "log", "search"]),
    ("show the cpu usage of the last hour from grafana", ["grafana", "metric", "query"]),
    ("the site is down, page whoever is on call through datadog", ["datadog", "incident", "declare"]),
    ("restart the api deployment in kubernetes", ["kubernetes", "deployment", "restart"]),
    ("my pod keeps crashing, show its output", ["kubernetes", "pod", "logs"]),
    ("scale the web workers to 5 replicas on k8s", ["kubernetes", "deployment", "scale"]),
    ("keep a database password for my containers in docker", ["docker", "secret", "create"]),
    ("empty a nomad node before maintenance", ["nomad", "node", "drain"]),
    ("how many blue shirts are left in shopify", ["shopify", "inventory level", "get"]),
    ("print a shipping label for a woocommerce order", ["woocommerce", "shipment", "label"]),
    ("accept the goods that a buyer sent back in magento", ["magento", "return", "approve"]),
    ("will it rain in Oslo tomorrow", ["atlas", "forecast", "get"]),
    ("is the air safe to breathe in Delhi", ["atlas", "air quality", "get"]),
    ("how long is the drive from Bern to Milan", ["atlas", "route", "get"]),
    ("when is high water in Brest", ["atlas", "tide", "get"]),
];

/// These were not looked at when the parameters were chosen: first as models put it, then as people do.
const QUESTIONS: [Question; 50] = [
    ("github pull request approve review", ["github", "pull request", "review"]),
    ("gitlab retry failed pipeline jobs", ["gitlab", "workflow run", "rerun"]),
    ("bitbucket undo a commit", ["bitbucket", "commit", "revert"]),
    ("slack search messages", ["slack", "message", "search"]),
    ("teams create channel", ["teams", "channel", "create"]),
    ("discord lock thread replies", ["discord", "thread", "lock"]),
    ("jira change ticket status to done", ["jira", "ticket", "transition"]),
    ("linear add comment to issue", ["linear", "comment", "create"]),
    ("asana track time on a task", ["asana", "time entry", "create"]),
    ("s3 upload file to bucket", ["s3", "object", "put"]),
    ("gcs set bucket tags", ["gcs", "tag set", "set"]),
    ("postgres describe table columns", ["postgres", "table", "describe"]),
    ("mongodb count documents matching filter", ["mongodb", "row", "count"]),
    ("mysql restore database backup", ["mysql", "backup", "restore"]),
    ("gmail search inbox messages from sender", ["gmail", "email", "search"]),
    ("outlook create folder", ["outlook", "label", "create"]),
    ("google calendar create event", ["googlecalendar", "event", "create"]),
    ("notion query database with filter", ["notion", "database", "filter"]),
    ("confluence export page as PDF", ["confluence", "export", "create"]),
    ("stripe list customers", ["stripe", "customer", "list"]),
    ("paypal create payment link", ["paypal", "payment link", "create"]),
    ("hubspot send quote for signature", ["hubspot", "quote", "send"]),
    ("grafana create alert rule", ["grafana", "monitor", "create"]),
    ("kubernetes execute command in pod", ["kubernetes", "pod", "exec"]),
    ("shopify track shipment", ["shopify", "shipment", "track"]),
    ("take the dark-mode branch off github, we don't need it anymore", ["github", "branch", "delete"]),
    ("who works on this gitlab project?", ["gitlab", "collaborator", "list"]),
    ("call our server whenever something is pushed to bitbucket", ["bitbucket", "webhook", "create"]),
    ("don't bother me on slack for the next two hours", ["slack", "presence", "snooze"]),
    ("let's make a custom party parrot emoji for discord", ["discord", "emoji", "create"]),
    ("what did I forget to do? show my teams reminders", ["teams", "reminder", "list"]),
    ("jira: wrap up this sprint and carry over what's left", ["jira", "sprint", "complete"]),
    ("rename the 'urgent' label in linear", ["linear", "label", "update"]),
    ("is there something larger above this asana task? show the portfolios", ["asana", "epic", "list"]),
    ("that link to our azure file leaked, make it stop working", ["azureblob", "presigned url", "revoke"]),
    ("copy everything to a second region by itself, google cloud storage", ["gcs", "replication", "create"]),
    ("which queries are running on postgres at the moment", ["postgres", "query", "list"]),
    ("let the reporting team log in to mysql", ["mysql", "role", "create"]),
    ("please get this person out of my outlook address book", ["outlook", "contact", "delete"]),
    ("I never want to see this fastmail conversation again", ["fastmail", "conversation", "mute"]),
    ("what time is it in Tokyo when it is 9 in Berlin? cal.com", ["calcom", "time zone", "convert"]),
    (
        "let people pick a slot with me themselves, in Google Calendar",
        ["googlecalendar", "booking link", "create"],
    ),
    ("undo my last edits in google docs, go back to yesterday", ["googledocs", "version", "restore"]),
    ("how much did stripe send to our bank last month", ["stripe", "payout", "list"]),
    ("someone else should take over this lead, pipedrive", ["pipedrive", "lead", "assign"]),
    ("did the spring campaign in hubspot make any money", ["hubspot", "campaign", "report"]),
    ("where does the time go in this slow datadog trace", ["datadog", "trace", "flamegraph"]),
    ("put the previous release of the api back on kubernetes", ["kubernetes", "deployment", "rollback"]),
    ("does this docker image have known security holes", ["docker", "image", "scan"]),
    ("how steep is the road to the pass", ["atlas", "elevation", "slope"]),
];

/// The index as a host makes it, which knows what its servers are called.
fn index(tools: &[Tool]) -> Index {
    let products = products();
    Index::new(tools.iter().map(|tool| {
        let entry = Entry::from(tool);
        let product = products.iter().find(|(server, _)| entry.server == Some(*server));
        Entry { server: product.map(|(_, words)| words.as_str()), ..entry }
    }))
}

/// The questions that do not find their tool among the first five, and what they find.
fn missed(questions: &[Question]) -> Vec<String> {
    let (tools, keys) = catalog();
    assert_eq!(tools.len(), 2_000);
    let index = index(&tools);
    let mut missed = Vec::new();
    for (question, key) in questions {
        let right = keys.iter().position(|candidate| candidate == key);
        let right = right.unwrap_or_else(|| panic!("no tool {key:?}"));
        let hits = index.search(question, 2_000);
        let rank = hits.iter().position(|hit| hit.position == right);
        if rank.is_none_or(|rank| rank >= 5) {
            let first: Vec<&str> = hits.iter().take(5).map(|hit| tools[hit.position].name.as_str()).collect();
            missed.push(format!("{question:?} wants {} at {rank:?}, finds {first:?}", tools[right].name));
        }
    }
    missed
}

#[test]
fn nine_of_ten_questions_find_their_tool_among_the_first_five() {
    let missed = missed(&QUESTIONS);
    println!("{} of {} missed\n{}", missed.len(), QUESTIONS.len(), missed.join("\n"));
    assert!(missed.len() * 10 <= QUESTIONS.len());
}

#[test]
fn the_tuning_queries_do_not_get_worse() {
    let missed = missed(&TUNING);
    println!("{} of {} missed\n{}", missed.len(), TUNING.len(), missed.join("\n"));
    assert!(missed.len() * 10 <= TUNING.len());
}

#[test]
fn a_search_gives_the_same_result_every_time() {
    let (tools, _) = catalog();
    let (one, other) = (index(&tools), index(&tools));
    for (question, _) in &QUESTIONS {
        assert_eq!(one.search(question, 50), other.search(question, 50));
    }
}
