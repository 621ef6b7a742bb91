//! Tools that are searched for instead of listed: who is listed what, and what the three tools for it do.
//!
//! They open no second way: what is found is what would be listed, and what is called by `call_tool` is from here on a
//! call like any other, with the same rules, pins and questions.

use super::{Inner, Wait};
use crate::{aggregate::Catalog, upstream::CallerKey};
use bowline_proto::{
    params::Params,
    service::{Call, ClientView, Outcome, Reply},
};
use bowline_search::{
    Decision, Listing, MetaCall, MetaTool, Reason, describe_tool, no_such_tool, search_result,
};
use bowline_types::{CallToolResult, Method, RawJson, RpcError, Tool};
use std::sync::{Arc, PoisonError};

/// What becomes of a call once the three tools were looked for.
pub(super) enum Disclosed {
    /// It goes on its way; what was wrapped in `call_tool` is unwrapped.
    Call(Call),
    /// It is answered.
    Answered(Outcome),
}

impl Inner {
    /// What a client is listed of a catalog.
    pub(super) fn listed(&self, client: &ClientView, catalog: &Catalog) -> Vec<Tool> {
        match self.listing(client, catalog).listing {
            Listing::Whole => catalog.tools.iter().map(|tool| tool.entry.shown.clone()).collect(),
            Listing::Search => catalog.for_search(),
        }
    }

    fn listing(&self, client: &ClientView, catalog: &Catalog) -> Decision {
        let disclosure = Arc::clone(&self.disclosure.read().unwrap_or_else(PoisonError::into_inner));
        disclosure.decide(client.info().map(|info| info.name.as_str()), catalog.tokens())
    }

    /// Answers the tools for searching, and unwraps what is called through them.
    pub(super) async fn disclosed(&self, mut call: Call) -> Disclosed {
        match self.try_disclose(&call).await {
            Ok(None) => Disclosed::Call(call),
            Ok(Some(Step::Answer(result))) => {
                Disclosed::Answered(Outcome::Complete(Reply::Tool(Box::new(result))))
            }
            Ok(Some(Step::Call(params))) => {
                call.params = params;
                Disclosed::Call(call)
            }
            Err(error) => Disclosed::Answered(Outcome::Failed(error)),
        }
    }

    async fn try_disclose(&self, call: &Call) -> Result<Option<Step>, RpcError> {
        if call.method != Method::CallTool {
            return Ok(None);
        }
        // Names of servers' tools have the name of their server in front, so none of them is meant.
        let Some(tool) = MetaTool::parse(&call.params.name()?) else { return Ok(None) };
        let tenant = CallerKey::tenant(call);
        let mut catalog = self.catalog(&tenant, Wait::Nobody).await;
        let decision = self.listing(&call.client, &catalog);
        // Whoever was listed them before the tools became few may still use them.
        if decision.listing == Listing::Whole && decision.reason != Reason::Small {
            return Ok(None);
        }
        let arguments = call.params.arguments()?;
        let asked = match MetaCall::parse(tool, arguments.as_ref()) {
            Ok(asked) => asked,
            Err(error) => return Ok(Some(Step::Answer(error.into()))),
        };
        if let MetaCall::Describe { name } | MetaCall::Call { name, .. } = &asked
            && catalog.tool(name).is_none()
        {
            // A name tells whose it is, so that others need not be there.
            catalog = self.catalog(&tenant, Wait::Owners(name)).await;
        }
        let unknown =
            |name: &str| Step::Answer(no_such_tool(name, &catalog.search().tools, &catalog.search().index));
        Ok(Some(match asked {
            MetaCall::Search { query, limit } => {
                let search = catalog.search();
                Step::Answer(search_result(&search.tools, &search.index.search(&query, limit)))
            }
            MetaCall::Describe { name } => match catalog.tool(&name) {
                Some(tool) => Step::Answer(describe_tool(&tool.entry.shown)),
                None => unknown(&name),
            },
            MetaCall::Call { name, arguments } => match catalog.tool(&name) {
                Some(_) => Step::Call(unwrapped(call, &name, arguments)?),
                None => unknown(&name),
            },
        }))
    }
}

enum Step {
    Answer(CallToolResult),
    Call(Params),
}

/// The parameters of the call that was meant.
fn unwrapped(call: &Call, name: &str, arguments: RawJson) -> Result<Params, RpcError> {
    let invalid = |error: serde_json::Error| RpcError::invalid_params(error.to_string());
    let mut members = call.params.raw().members().map_err(invalid)?;
    members.insert("name", RawJson::of(name).map_err(invalid)?);
    members.insert("arguments", arguments);
    Params::parse(RawJson::of(&members).map_err(invalid)?)
}
