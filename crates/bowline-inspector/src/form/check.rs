//! Checks arguments, and names the position of each error.

use super::FormProblem;
use bowline_client::SchemaValidator;
use bowline_types::RawJson;

/// How many errors are reported at most.
const MAX_PROBLEMS: usize = 100;

/// Checks a value against a schema. A schema that cannot be used is an error at the root.
pub(crate) fn check(schema: &RawJson, value: &RawJson) -> Vec<FormProblem> {
    let at_root = |message: String| vec![FormProblem { pointer: String::new(), message }];
    let validator = match SchemaValidator::new(schema) {
        Ok(validator) => validator,
        Err(reason) => return at_root(format!("the schema of the server is invalid: {reason}")),
    };
    match validator.problems(value, MAX_PROBLEMS) {
        Ok(problems) => {
            let problem = |(pointer, message): (String, String)| FormProblem {
                pointer,
                message: bowline_text::visible(&message).chars().take(500).collect(),
            };
            problems.into_iter().map(problem).collect()
        }
        Err(reason) => at_root(reason),
    }
}
