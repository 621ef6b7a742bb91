//! Tools that ask the user: by forms, with defaults and choices, and by a page to visit.

use bowline::prelude::*;

pub(super) fn add(server: Server) -> Server {
    server
        .tool(test_elicitation)
        .tool(test_elicitation_sep1034_defaults)
        .tool(test_elicitation_sep1330_enums)
        .tool(sign_in)
}

/// What the user did, in words.
fn told<T: std::fmt::Debug>(answer: Answer<T>) -> String {
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

/// Ask the user for an account.
#[tool(read_only)]
async fn test_elicitation(ctx: Ctx, message: String) -> Result<String> {
    Ok(told(ctx.ask::<Account>(message).await?))
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

/// Ask the user with a form that is filled in already.
#[tool(read_only)]
async fn test_elicitation_sep1034_defaults(ctx: Ctx) -> Result<String> {
    Ok(told(ctx.ask::<Defaults>("Please review and update the form fields").await?))
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
    /// Titles beside the values, as 2025-06-18 has them.
    #[schemars(extend("enumNames" = ["Option One", "Option Two", "Option Three"]))]
    legacy_enum: Short,
    #[serde(default)]
    untitled_multi: Vec<Plain>,
    #[serde(default)]
    titled_multi: Vec<Titled>,
}

/// Ask the user to choose, in each of the ways a form can.
#[tool(read_only)]
async fn test_elicitation_sep1330_enums(ctx: Ctx) -> Result<String> {
    Ok(told(ctx.ask::<Choices>("Please select options from the enum fields").await?))
}

/// Send the user to a page, for what must not pass through the client.
#[tool(title = "Sign in", open_world = false)]
async fn sign_in(ctx: Ctx) -> Result<String> {
    Ok(match ctx.ask_url("Please sign in.", "https://example.com/sign-in").await? {
        Answer::Accept(visit) => {
            // A real server waits until the page tells it who has signed in.
            ctx.visit_done(&visit);
            "the page was opened".into()
        }
        Answer::Decline => "the user would rather not".into(),
        Answer::Cancel => "the user went away".into(),
    })
}
