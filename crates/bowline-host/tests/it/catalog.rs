//! Two thousand tools as a big organization might connect them: 40 services with 50 operations each.
//!
//! Services of one kind share their objects, so most tools have two doubles elsewhere; each service has its own verbs,
//! its own style of names and its own way to describe things.

mod kinds;

use bowline_types::{RawJson, Tool};
use kinds::kinds;
use serde_json::{Map, json};

/// How a service writes the names of its tools.
#[derive(Clone, Copy)]
enum Style {
    Snake,
    Kebab,
    Camel,
    NounFirst,
}

struct Service {
    name: &'static str,
    /// What people call it.
    product: &'static str,
    style: Style,
    /// Which words it uses for the usual operations.
    dialect: usize,
    /// What it calls an object that others call otherwise.
    own_nouns: &'static [(&'static str, &'static str)],
}

const fn service(
    name: &'static str,
    product: &'static str,
    style: Style,
    dialect: usize,
    own_nouns: &'static [(&'static str, &'static str)],
) -> Service {
    Service { name, product, style, dialect, own_nouns }
}

/// An object: its noun, what it is, its parameters, and five operations. An operation is one of the usual ones, or
/// has a description of its own after `=`, in which `{a}` is the object.
struct Object(&'static str, &'static str, &'static str, [&'static str; 5]);

const CRUD: [&str; 5] = ["list", "get", "create", "update", "delete"];

struct Kind {
    services: &'static [Service],
    objects: [Object; 10],
}

/// The words of a dialect for list, get, create, update, delete and search.
const VERBS: [[&str; 6]; 4] = [
    ["list", "get", "create", "update", "delete", "search"],
    ["list", "fetch", "add", "edit", "remove", "find"],
    ["enumerate", "read", "new", "modify", "destroy", "query"],
    ["browse", "retrieve", "make", "change", "drop", "lookup"],
];

const USUAL: [&str; 6] = ["list", "get", "create", "update", "delete", "search"];

/// How the usual operations are described, two ways each.
const PHRASES: [[[&str; 2]; 6]; 4] = [
    [
        ["List {s} in {p}. {A} is {g}.", "Returns the {s} the caller can see. {A} is {g}."],
        ["Get a single {n} by its id: {g}.", "Get details of one {n} ({g})."],
        ["Create {a} in {p}. It is {g}.", "Create a new {n}, {g}."],
        [
            "Update fields of an existing {n} ({g}).",
            "Update {a} in {p}, {g}; fields that are left out keep their value.",
        ],
        ["Delete {a} ({g}). This cannot be undone.", "Permanently delete {a} from {p}, {g}."],
        ["Search {s} in {p} by text. {A} is {g}.", "Full-text search over {s} ({g})."],
    ],
    [
        ["Lists all {s} with pagination. {G}.", "Fetches a page of {s}, newest first; each is {g}."],
        ["Fetches {a} and everything known about it. {G}.", "Reads one {n}: {g}."],
        ["Adds {a}, {g}, to {p}.", "Adds a new {n}. {G}."],
        ["Edits {a}: {g}.", "Changes the properties of {a}, such as its {f}. {G}."],
        ["Removes {a} from {p}. {G}.", "Removes the {n} with the given id for good. {A} is {g}."],
        ["Finds {s} that match a filter. {G}.", "Finds {s} in {p} by keyword; each is {g}."],
    ],
    [
        ["Enumerate every {n}, optionally filtered. {A} is {g}.", "Gives the {s} of the {p} account ({g})."],
        ["Read {a}: {g}.", "Show one {n} with its {f}. {G}."],
        ["Make a new {n} ({g}).", "Set up {a} in {p}, {g}."],
        ["Modify {a}, {g}.", "Apply a partial change to {a}. {A} is {g}."],
        ["Destroy {a} ({g}).", "Get rid of {a}, {g}; related data goes as well."],
        ["Query {s} with an expression. {A} is {g}.", "Look for {s} by their {f}. {G}."],
    ],
    [
        ["Browse {s}: {g}.", "All {s} of a {p} workspace, page by page. {A} is {g}."],
        ["Retrieve {a} by identifier ({g}).", "Look up {a}: {g}."],
        ["Make {a}, {g}.", "Start a new {n} in {p}. It is {g}."],
        ["Change {a}, for instance its {f}. {G}.", "Overwrite attributes of {a} ({g})."],
        ["Drop {a}: {g}.", "Delete or deactivate {a} in {p}. {A} is {g}."],
        ["Look up {s} by any attribute ({g}).", "Filter {s} and return the matches. {A} is {g}."],
    ],
];

/// All the tools, and of each the service, the object and the operation it is.
pub(crate) fn catalog() -> (Vec<Tool>, Vec<[&'static str; 3]>) {
    let mut tools = Vec::new();
    let mut keys = Vec::new();
    for kind in kinds() {
        for service in kind.services {
            for (place, object) in kind.objects.iter().enumerate() {
                for operation in object.3 {
                    let key = operation.split('=').next().unwrap_or_default();
                    tools.push(tool(service, object, operation, place + tools.len()));
                    keys.push([service.name, object.0, key]);
                }
            }
        }
    }
    (tools, keys)
}

/// The servers, and the words each is known by.
pub(crate) fn products() -> Vec<(&'static str, String)> {
    let services = kinds().flat_map(|kind| kind.services);
    services.map(|service| (service.name, format!("{} {}", service.name, service.product))).collect()
}

fn tool(service: &Service, object: &Object, operation: &str, turn: usize) -> Tool {
    let Object(noun, gloss, fields, _) = object;
    let noun = service.own_nouns.iter().find(|(common, _)| common == noun).map_or(*noun, |(_, own)| *own);
    let (key, own_text) =
        operation.split_once('=').map_or((operation, None), |(key, text)| (key, Some(text)));
    let usual = USUAL.iter().position(|usual| *usual == key);
    let verb = usual.map_or(key, |usual| VERBS[service.dialect][usual]);
    let template = match (own_text, service.dialect % 2) {
        (Some(text), 0) => format!("{text} {{A}} is {{g}}."),
        (Some(text), _) => format!("{text} {{G}}."),
        (None, dialect_is_odd) => {
            PHRASES[service.dialect][usual.unwrap()][(turn + dialect_is_odd) % 2].to_owned()
        }
    };
    let first_field = fields.split(' ').next().unwrap_or_default().replace('_', " ");
    let capital = |text: &str| format!("{}{}", text[..1].to_ascii_uppercase(), &text[1..]);
    let description = template
        .replace("{a}", &with_article(noun))
        .replace("{s}", &plural(noun))
        .replace("{n}", noun)
        .replace("{p}", service.product)
        .replace("{g}", gloss)
        .replace("{A}", &capital(&with_article(noun)))
        .replace("{G}", &capital(gloss))
        .replace("{f}", &first_field);
    let nouns = if matches!(key, "list" | "search") { plural(noun) } else { noun.to_owned() };
    let name = format!("{}__{}", service.name, styled(service.style, verb, &nouns));
    let built = Tool::new(name, schema(noun, key, fields, turn)).description(description);
    if turn.is_multiple_of(3) { built.title(format!("{verb} {nouns}").replace('_', " ")) } else { built }
}

fn schema(noun: &str, key: &str, fields: &str, turn: usize) -> RawJson {
    let mut properties = Map::new();
    let id = format!("{}_id", noun.replace(' ', "_"));
    if !matches!(key, "list" | "search" | "create") {
        properties.insert(id.clone(), json!({"type": "string", "description": format!("Id of the {noun}")}));
    }
    match key {
        "list" => {
            properties.insert("cursor".into(), json!({"type": "string", "description": "Where to continue"}));
            properties.insert("limit".into(), json!({"type": "integer", "maximum": 100}));
        }
        "search" => {
            properties.insert("q".into(), json!({"type": "string", "description": "What to look for"}));
        }
        "get" | "delete" => {}
        _ => {
            for field in fields.split(' ') {
                let text = format!("The {} of the {noun}", field.replace('_', " "));
                let described = json!({"type": "string", "description": text});
                let plain = json!({"type": "string"});
                properties.insert(field.into(), if turn.is_multiple_of(2) { described } else { plain });
            }
        }
    }
    let required: Vec<&String> = properties.keys().filter(|name| **name == id).collect();
    RawJson::from(json!({"type": "object", "required": required, "properties": properties}))
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

fn plural(noun: &str) -> String {
    match noun {
        _ if noun.ends_with('s') || noun.ends_with('x') || noun.ends_with("ch") => format!("{noun}es"),
        _ if noun.ends_with('y') && !noun.ends_with("ay") => format!("{}ies", &noun[..noun.len() - 1]),
        _ => format!("{noun}s"),
    }
}

fn styled(style: Style, verb: &str, noun: &str) -> String {
    let words = |text: &str, glue: &str| text.replace([' ', '_', '-'], glue);
    match style {
        Style::Snake => format!("{verb}_{}", words(noun, "_")),
        Style::Kebab => format!("{}-{}", words(verb, "-"), words(noun, "-")),
        Style::NounFirst => format!("{}_{verb}", words(noun, "_")),
        Style::Camel => {
            let mut name = String::new();
            for (place, word) in format!("{verb} {noun}").split([' ', '_', '-']).enumerate() {
                let mut word = word.to_owned();
                if place > 0 {
                    word[..1].make_ascii_uppercase();
                }
                name.push_str(&word);
            }
            name
        }
    }
}
