//! Compares the variables of a URI template with the parameters of its function.

use crate::parameters::{Field, Input};
use syn::{Error, LitStr, Result};

/// Checks that the variables and the parameters are the same.
pub(crate) fn check(uri: &LitStr, input: &Input) -> Result<()> {
    let template = uri.value();
    let variables = variables(&template).map_err(|reason| Error::new(uri.span(), reason))?;
    let fields: &[Field] = match input {
        Input::Nothing => &[],
        Input::Fields(fields) => fields,
        // Only the compiler knows the fields of this type.
        Input::Whole(_) => return Ok(()),
    };
    if let Some(field) = fields.iter().find(|field| !variables.contains(&field.name)) {
        let reason = format!("`{}` is not a variable of `{template}`", field.name);
        return Err(Error::new(field.ident.span(), reason));
    }
    match variables.iter().find(|variable| !fields.iter().any(|field| field.name == **variable)) {
        Some(variable) => {
            Err(Error::new(uri.span(), format!("the variable `{variable}` has no parameter of this name")))
        }
        None => Ok(()),
    }
}

/// Returns the names of the variables, as in RFC 6570. Other errors are reported when the resource is registered.
fn variables(template: &str) -> std::result::Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut rest = template;
    while let Some(start) = rest.find(['{', '}']) {
        let (_, expression) = rest.split_at(start);
        let Some(expression) = expression.strip_prefix('{') else {
            return Err(format!("unmatched `}}` in `{template}`"));
        };
        let Some((expression, after)) = expression.split_once('}') else {
            return Err(format!("unclosed `{{` in `{template}`"));
        };
        let list = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']).unwrap_or(expression);
        for variable in list.split(',') {
            let name = variable.split(':').next().unwrap_or_default().trim_end_matches('*');
            if name.is_empty() {
                return Err(format!("`{{{expression}}}` of `{template}` lacks the name of a variable"));
            }
            names.push(name.to_owned());
        }
        rest = after;
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::variables;

    #[test]
    fn every_form_of_expression_is_read() {
        assert_eq!(variables("a://{b}/{+c}{/d*,e}{?f:3}{&g}").unwrap(), ["b", "c", "d", "e", "f", "g"]);
        assert!(variables("a://b").unwrap().is_empty());
    }

    #[test]
    fn invalid_templates_are_reported() {
        assert_eq!(variables("a://{b").unwrap_err(), "unclosed `{` in `a://{b`");
        assert_eq!(variables("a://b}").unwrap_err(), "unmatched `}` in `a://b}`");
        assert_eq!(variables("a://{?}").unwrap_err(), "`{?}` of `a://{?}` lacks the name of a variable");
    }
}
