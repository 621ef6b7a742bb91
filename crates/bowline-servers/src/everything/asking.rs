//! Tools that ask the user: forms with defaults and choices, and URLs.

use bowline::prelude::*;

pub(super) fn add(server: Server) -> Server {
    server
        .tool(test_elicitation::tool())
        .tool(test_elicitation_sep1034_defaults::tool())
        .tool(test_elicitation_sep1330_enums::tool())
        .tool(sign_in::tool())
}

/// Describes the answer of the user.
fn describe_answer<T: std::fmt::Debug>(answer: Answer<T>) -> String {
    match answer {
        Answer::Accept(content) => format!("User response: accept {content:?}"),
        Answer::Decline => "User response: decline".into(),
        Answer::Cancel => "User response: cancel".into(),
    }
}

#[data]
struct Account {
    /// User's name.
    username: String,
    /// User's email address.
    #[schemars(email)]
    email: String,
}

/// Ask the user for a name and an email address.
#[tool(read_only)]
async fn test_elicitation(ctx: Ctx, message: String) -> Result<String> {
    Ok(describe_answer(ctx.ask::<Account>(message).await?))
}

#[data]
#[serde(rename_all = "lowercase")]
enum Status {
    Active,
    Inactive,
    Pending,
}

#[data]
struct Defaults {
    #[serde(default = "Defaults::name")]
    name: String,
    #[serde(default = "Defaults::age")]
    age: i64,
    #[serde(default = "Defaults::score")]
    score: f64,
    #[serde(default = "Defaults::status")]
    status: Status,
    #[serde(default = "Defaults::verified")]
    verified: bool,
}

impl Defaults {
    fn name() -> String {
        "John Doe".into()
    }

    fn age() -> i64 {
        30
    }

    fn score() -> f64 {
        95.5
    }

    fn status() -> Status {
        Status::Active
    }

    fn verified() -> bool {
        true
    }
}

/// Ask the user with a form that has default values.
#[tool(read_only)]
async fn test_elicitation_sep1034_defaults(ctx: Ctx) -> Result<String> {
    Ok(describe_answer(ctx.ask::<Defaults>("Please review and update the form fields").await?))
}

#[data]
#[serde(rename_all = "lowercase")]
enum Plain {
    Option1,
    Option2,
    Option3,
}

#[data]
#[serde(rename_all = "lowercase")]
enum Titled {
    /// First Value
    Value1,
    /// Second Value
    Value2,
    /// Third Value
    Value3,
}

#[data]
#[serde(rename_all = "lowercase")]
enum Short {
    Opt1,
    Opt2,
    Opt3,
}

#[data]
#[serde(rename_all = "camelCase")]
struct Choices {
    untitled_single: Option<Plain>,
    titled_single: Option<Titled>,
    /// Titles for the values, in the format of 2025-06-18.
    #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: Short,
    #[serde(default)]
    untitled_multi: Vec<Plain>,
    #[serde(default)]
    titled_multi: Vec<Titled>,
}

/// Ask the user to choose, with every kind of choice that forms support.
#[tool(read_only)]
async fn test_elicitation_sep1330_enums(ctx: Ctx) -> Result<String> {
    Ok(describe_answer(ctx.ask::<Choices>("Please select options from the enum fields").await?))
}

/// Ask the user to visit a URL, for data that must not pass through the client.
#[tool(title = "Sign in", open_world = false)]
async fn sign_in(ctx: Ctx) -> Result<String> {
    Ok(match ctx.ask_url("Please sign in.", "https://example.com/sign-in").await? {
        Answer::Accept(visit) => {
            // A real server waits until the sign-in page reports back.
            ctx.visit_done(&visit);
            "the user opened the page".into()
        }
        Answer::Decline => "the user declined".into(),
        Answer::Cancel => "the user cancelled".into(),
    })
}
