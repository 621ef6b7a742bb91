//! Parses JSON with comments and trailing commas into nodes.

use std::path::Path;
use std::sync::Arc;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::ParseErrorKind;
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind};
use serde_json::Number;

use super::node::{Lines, MAX_DEPTH, Member, Members, Node, Value};
use super::report::Report;

/// Comments and trailing commas are common in files of editors. Further tolerance would hide mistakes.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(crate) fn parse(file: &Arc<Path>, text: &str, report: &Report) -> Option<Node> {
    let lines = Lines::new(file, text);
    let parsed = match jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &OPTIONS) {
        Ok(parsed) => parsed,
        Err(error) => {
            let (message, help) = describe(error.kind());
            report.error_with(&lines.origin(error.range().start), "", message, help);
            return None;
        }
    };
    let Some(value) = parsed.value else {
        let help = "write `{ \"mcpServers\": {} }`";
        report.error_with(&lines.origin(0), "", "expected a JSON object, got an empty file", help);
        return None;
    };
    convert(value, &lines, report, 0)
}

fn convert(value: ast::Value<'_>, lines: &Lines<'_>, report: &Report, depth: usize) -> Option<Node> {
    let origin = lines.origin(value.range().start);
    if depth > MAX_DEPTH {
        report.error(&origin, "", format!("expected at most {MAX_DEPTH} levels of nesting"));
        return None;
    }
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::StringLit(literal) => Value::String(literal.value.into_owned()),
        ast::Value::NumberLit(literal) => {
            let Ok(number) = literal.value.parse::<Number>() else {
                report.error(&origin, "", format!("expected a number, got `{}`", literal.value));
                return None;
            };
            Value::Number(number)
        }
        ast::Value::Array(array) => Value::Array(
            array
                .elements
                .into_iter()
                .map(|element| convert(element, lines, report, depth + 1))
                .collect::<Option<_>>()?,
        ),
        ast::Value::Object(object) => {
            let mut members = Members::default();
            for property in object.properties {
                let name_origin = lines.origin(property.range.start);
                let name = property.name.into_string();
                let node = convert(property.value, lines, report, depth + 1)?;
                members.push(Member { name, origin: name_origin, node });
            }
            members.into_value()
        }
    };
    Some(Node { value, origin })
}

/// Returns what was expected at the error, and what to write there.
fn describe(kind: &ParseErrorKind) -> (&'static str, &'static str) {
    match kind {
        ParseErrorKind::ExpectedColonAfterObjectKey => {
            ("expected `:` after the name", "write `\"name\": value`")
        }
        ParseErrorKind::ExpectedObjectValue => ("expected a value after `:`", "write `\"name\": value`"),
        ParseErrorKind::ExpectedStringObjectProperty
        | ParseErrorKind::UnexpectedWord
        | ParseErrorKind::UnexpectedTokenInObject => {
            ("expected a name or text in double quotes", "put it in `\"…\"`")
        }
        ParseErrorKind::SingleQuotedStringsNotAllowed => {
            ("expected double quotes, got single quotes", "write `\"…\"`")
        }
        ParseErrorKind::ExpectedComma => {
            ("expected `,` between members", "add a comma after the previous member")
        }
        ParseErrorKind::MultipleRootJsonValues => {
            ("expected the end of the file after the closing `}`", "keep one object in the file")
        }
        ParseErrorKind::UnexpectedComma => ("expected a value, got `,`", "remove the comma"),
        ParseErrorKind::UnexpectedCloseBrace => ("expected a value, got `}`", "check the braces before it"),
        ParseErrorKind::UnexpectedCloseBracket => {
            ("expected a value, got `]`", "check the brackets before it")
        }
        ParseErrorKind::UnexpectedColon => ("expected a value, got `:`", "put a name before it"),
        ParseErrorKind::UnterminatedArray => ("expected `]` before the end", "close the list with `]`"),
        ParseErrorKind::UnterminatedObject => {
            ("expected `}` to close the object that begins here", "close it with `}`")
        }
        ParseErrorKind::UnterminatedCommentBlock => {
            ("expected `*/` before the end", "close the comment with `*/`")
        }
        ParseErrorKind::NestingDepthExceeded => ("nested too deeply", "flatten the file"),
        ParseErrorKind::String(ParseStringErrorKind::UnterminatedStringLiteral) => {
            ("expected `\"` before the end of the line", "close the quotes that begin here")
        }
        ParseErrorKind::String(_) => ("invalid escape sequence", "write a backslash as `\\\\`"),
        ParseErrorKind::BareDecimalPointNumbersNotAllowed
        | ParseErrorKind::ExpectedDigit
        | ParseErrorKind::ExpectedDigitFollowingNegativeSign
        | ParseErrorKind::ExpectedPlusMinusOrDigitInNumberLiteral
        | ParseErrorKind::HexadecimalNumbersNotAllowed
        | ParseErrorKind::NonFiniteNumbersNotAllowed
        | ParseErrorKind::UnaryPlusNumbersNotAllowed => {
            ("expected a decimal number", "write it as `1` or `1.5`")
        }
        ParseErrorKind::CommentsNotAllowed
        | ParseErrorKind::TrailingCommasNotAllowed
        | ParseErrorKind::UnexpectedToken => {
            ("expected a JSON value", "write `\"text\"`, a number, `true`, `false`, `[…]` or `{…}`")
        }
    }
}
