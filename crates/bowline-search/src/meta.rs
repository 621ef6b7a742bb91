//! The three meta tools: their definitions, and parsing of calls to them.

use super::normalize::one_line;
use bowline_types::{CallToolResult, RawJson, RawMap, Tool, ToolAnnotations};
use serde_json::json;
use std::{
    error::Error,
    fmt::{self, Write as _},
};

/// The default number of search results.
const DEFAULT_LIMIT: usize = 5;
/// The maximum number of search results.
const MAX_LIMIT: usize = 25;
/// The maximum length of the server names in the description.
const MAX_SOURCES: usize = 1_500;

/// A tool to find and call other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MetaTool {
    /// `search_tools`: finds tools by what they do.
    Search,
    /// `describe_tool`: returns the complete definition of a tool.
    Describe,
    /// `call_tool`: calls a tool.
    Call,
}

/// A server whose tools can be searched, for the description of `search_tools`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    /// The server.
    pub name: &'a str,
    /// The number of its tools.
    pub tools: usize,
}

impl MetaTool {
    /// All meta tools, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Search, Self::Describe, Self::Call];

    /// Returns the name of the tool.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Describe => "describe_tool",
            Self::Call => "call_tool",
        }
    }

    /// Returns the meta tool with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Returns the definition of the tool. The description lists `sources`.
    pub fn definition(self, sources: &[Source<'_>]) -> Tool {
        let tool = Tool::new(self.name(), self.input_schema());
        match self {
            Self::Search => tool
                .title("Search tools")
                .description(search_description(sources))
                .output_schema(found_schema())
                .annotations(reads_only()),
            Self::Describe => tool
                .title("Describe a tool")
                .description(
                    "Get the complete definition of one tool: its description, the JSON Schema of its arguments and \
                     hints about its behavior. Use it when the summary from search_tools leaves open how to call it.",
                )
                .output_schema(definition_schema())
                .annotations(reads_only()),
            Self::Call => tool.title("Call a tool").description(
                "Call a tool that search_tools found, by its exact name. The result is that of the tool itself. \
                 `arguments` must follow the tool's own input schema.",
            ),
        }
    }

    fn input_schema(self) -> RawJson {
        let name = json!({"type": "string", "description": "The exact name, as search_tools gives it."});
        RawJson::from(match self {
            Self::Search => json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "minLength": 1,
                        "description": "What the tool should do, in a few words, with the name of the product where \
                            it matters: \"create an issue in GitHub\". The exact name of a tool finds it, too.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_LIMIT,
                        "default": DEFAULT_LIMIT,
                        "description": "How many tools to return.",
                    },
                },
                "required": ["query"],
            }),
            Self::Describe => json!({"type": "object", "properties": {"name": name}, "required": ["name"]}),
            Self::Call => json!({
                "type": "object",
                "properties": {
                    "name": name,
                    "arguments": {"type": "object", "description": "The arguments of that tool."},
                },
                "required": ["name"],
            }),
        })
    }
}

fn reads_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only_hint(true).open_world_hint(false)
}

fn search_description(sources: &[Source<'_>]) -> String {
    let total: usize = sources.iter().map(|source| source.tools).sum();
    let mut text = format!(
        "Find tools by what they do. {total} tools are available that are not listed here; search before you \
         conclude that something cannot be done. Gives the best matches with their parameters; call one with \
         call_tool.",
    );
    let mut listed = String::new();
    for (place, source) in sources.iter().enumerate() {
        if listed.len() > MAX_SOURCES {
            let _ = write!(listed, " and {} more", sources.len() - place);
            break;
        }
        let comma = if place == 0 { "" } else { ", " };
        let _ = write!(listed, "{comma}{} ({})", one_line(source.name, 64), source.tools);
    }
    if !listed.is_empty() {
        let _ = write!(text, " Servers and how many tools each has: {listed}.");
    }
    text
}

/// Returns the schema of the output of [`search_result`](super::search_result).
fn found_schema() -> RawJson {
    RawJson::from(json!({
        "type": "object",
        "properties": {
            "tools": {
                "type": "array",
                "description": "The matches, best first.",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "description": "The exact name."},
                        "signature": {"type": "string", "description": "The parameters with their types; ? marks optional ones."},
                        "description": {"type": "string", "description": "What it does, shortened."},
                    },
                    "required": ["name", "signature"],
                },
            },
            "total": {"type": "integer", "description": "How many tools were searched."},
        },
        "required": ["tools", "total"],
    }))
}

/// Returns the schema of the output of [`describe_tool`](super::describe_tool).
fn definition_schema() -> RawJson {
    RawJson::from(json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "string"},
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object"},
            "annotations": {"type": "object"},
        },
        "required": ["name", "inputSchema"],
    }))
}

/// A parsed call of a [`MetaTool`].
#[derive(Clone, Debug, PartialEq)]
pub enum MetaCall {
    /// Search for tools.
    Search {
        /// What the tools do.
        query: String,
        /// The maximum number of results.
        limit: usize,
    },
    /// Return the definition of a tool.
    Describe {
        /// The name of the tool.
        name: String,
    },
    /// Call a tool.
    Call {
        /// The name of the tool.
        name: String,
        /// The arguments, an object.
        arguments: RawJson,
    },
}

impl MetaCall {
    /// Parses the arguments of a call.
    ///
    /// Tolerates common mistakes of models: a limit that is too large or a string, and arguments that are JSON in a
    /// string. For other mistakes the error tells the model what to correct.
    pub fn parse(tool: MetaTool, arguments: Option<&RawJson>) -> Result<Self, MetaCallError> {
        let members = match arguments {
            Some(arguments) if !arguments.is_null() => {
                arguments.members().map_err(|error| MetaCallError(format!("expected an object: {error}")))?
            }
            _ => RawMap::new(),
        };
        Ok(match tool {
            MetaTool::Search => Self::Search { query: text(&members, "query")?, limit: limit(&members)? },
            MetaTool::Describe => Self::Describe { name: text(&members, "name")? },
            MetaTool::Call => {
                let name = text(&members, "name")?;
                if MetaTool::parse(&name).is_some() {
                    return Err(MetaCallError(format!("call `{name}` directly, not through `call_tool`")));
                }
                Self::Call { name, arguments: inner_arguments(&members)? }
            }
        })
    }
}

fn text(members: &RawMap, key: &str) -> Result<String, MetaCallError> {
    let text: Option<String> =
        members.decode(key).map_err(|_| MetaCallError(format!("expected `{key}` to be a string")))?;
    text.filter(|text| !text.trim().is_empty())
        .ok_or_else(|| MetaCallError(format!("`{key}` is missing or empty")))
}

fn limit(members: &RawMap) -> Result<usize, MetaCallError> {
    let Some(raw) = members.get("limit").filter(|raw| !raw.is_null()) else { return Ok(DEFAULT_LIMIT) };
    let written: Option<String> = raw.decode().ok();
    let number = written.map_or_else(|| raw.decode::<f64>().ok(), |text| text.trim().parse().ok());
    let number = number
        .filter(|number| !number.is_nan())
        .ok_or_else(|| MetaCallError("expected `limit` to be a number".into()))?;
    let wanted = (1..=MAX_LIMIT).rev().find(|whole| f64::from(u32::try_from(*whole).unwrap_or(1)) <= number);
    Ok(wanted.unwrap_or(1))
}

fn inner_arguments(members: &RawMap) -> Result<RawJson, MetaCallError> {
    let wrong = || MetaCallError("expected `arguments` to be an object".into());
    match members.get("arguments") {
        None => Ok(RawJson::empty_object()),
        Some(arguments) if arguments.is_object() => Ok(arguments.clone()),
        Some(arguments) if arguments.is_null() => Ok(RawJson::empty_object()),
        Some(arguments) => {
            let text: String = arguments.decode().map_err(|_| wrong())?;
            RawJson::parse(text).ok().filter(RawJson::is_object).ok_or_else(wrong)
        }
    }
}

/// An invalid call of a [`MetaTool`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetaCallError(String);

impl fmt::Display for MetaCallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for MetaCallError {}

impl From<MetaCallError> for CallToolResult {
    /// Creates a tool result that the model can read.
    fn from(MetaCallError(reason): MetaCallError) -> Self {
        Self::error(reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tool: MetaTool, arguments: &str) -> Result<MetaCall, String> {
        MetaCall::parse(tool, Some(&RawJson::parse(arguments.to_owned()).unwrap()))
            .map_err(|error| error.to_string())
    }

    fn search(query: &str, limit: usize) -> MetaCall {
        MetaCall::Search { query: query.into(), limit }
    }

    #[test]
    fn searches_have_a_query_and_a_bounded_limit() {
        for (limit, expected) in [
            ("1", 1),
            ("25", 25),
            ("26", 25),
            ("1e99", 25),
            ("0", 1),
            ("-3", 1),
            ("7.9", 7),
            ("\"12\"", 12),
            ("null", 5),
        ] {
            let arguments = format!(r#"{{"query":"send mail","limit":{limit}}}"#);
            assert_eq!(parse(MetaTool::Search, &arguments), Ok(search("send mail", expected)), "{limit}");
        }
        assert_eq!(parse(MetaTool::Search, r#"{"query":"x","more":1}"#), Ok(search("x", 5)));
        for (arguments, reason) in [
            ("{}", "`query` is missing or empty"),
            (r#"{"query":" "}"#, "`query` is missing or empty"),
            (r#"{"query":1}"#, "expected `query` to be a string"),
            (r#"{"query":"x","limit":[]}"#, "expected `limit` to be a number"),
            (r#"{"query":"x","limit":"many"}"#, "expected `limit` to be a number"),
        ] {
            assert_eq!(parse(MetaTool::Search, arguments).unwrap_err(), reason);
        }
        assert!(parse(MetaTool::Search, "[]").unwrap_err().starts_with("expected an object"));
        assert!(MetaCall::parse(MetaTool::Search, None).is_err());
    }

    #[test]
    fn calls_carry_the_arguments_of_the_tool() {
        let call = |arguments: &str| {
            Ok(MetaCall::Call { name: "t".into(), arguments: RawJson::parse(arguments.to_owned()).unwrap() })
        };
        assert_eq!(parse(MetaTool::Call, r#"{"name":"t","arguments":{"a":1.0}}"#), call(r#"{"a":1.0}"#));
        assert_eq!(parse(MetaTool::Call, r#"{"name":"t","arguments":"{\"a\":1}"}"#), call(r#"{"a":1}"#));
        assert_eq!(parse(MetaTool::Call, r#"{"name":"t"}"#), call("{}"));
        assert_eq!(parse(MetaTool::Call, r#"{"name":"t","arguments":null}"#), call("{}"));
        for wrong in ["7", "[]", r#""text""#, r#""[1]""#] {
            let arguments = format!(r#"{{"name":"t","arguments":{wrong}}}"#);
            assert_eq!(
                parse(MetaTool::Call, &arguments).unwrap_err(),
                "expected `arguments` to be an object"
            );
        }
    }

    #[test]
    fn a_meta_tool_does_not_call_another() {
        for tool in MetaTool::ALL {
            let error = parse(MetaTool::Call, &format!(r#"{{"name":"{}"}}"#, tool.name())).unwrap_err();
            assert!(error.contains("directly, not through"), "{error}");
            assert_eq!(MetaTool::parse(tool.name()), Some(tool));
        }
    }

    #[test]
    fn definitions_describe_what_can_be_searched() {
        let sources = [Source { name: "github", tools: 50 }, Source { name: "slack\nx", tools: 7 }];
        let search = MetaTool::Search.definition(&sources);
        let text = search.description.unwrap();
        assert!(text.contains("57 tools") && text.ends_with("github (50), slack x (7)."), "{text}");
        let names: Vec<String> = (0..500).map(|number| format!("server-{number}")).collect();
        let many: Vec<Source<'_>> = names.iter().map(|name| Source { name, tools: 1 }).collect();
        let text = MetaTool::Search.definition(&many).description.unwrap();
        assert!(text.len() < 2_500 && text.ends_with(" more."), "{text}");
        assert!(!MetaTool::Search.definition(&[]).description.unwrap().contains("Servers"));
    }

    #[test]
    fn definitions_are_small_and_their_schemas_describe_objects() {
        for tool in MetaTool::ALL {
            let definition = tool.definition(&[]);
            assert_eq!(definition.input_schema.to_value().unwrap()["type"], "object");
            let text = serde_json::to_string(&definition).unwrap();
            assert!(crate::estimate_tokens(&text) < 400, "{text}");
        }
        assert_eq!(MetaTool::Call.definition(&[]).output_schema, None);
    }
}
