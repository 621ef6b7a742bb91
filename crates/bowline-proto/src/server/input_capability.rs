//! Checks whether a client supports an input request.

use crate::service::ClientView;
use bowline_types::{
    ClientCapabilities, ElicitParams, ElicitationCapability, InputRequest, RawMap, Revision, RootsCapability,
    SamplingCapability,
};

/// Returns the capabilities that `client` lacks for `request`; `None` if it lacks none.
pub fn missing_capability(client: &ClientView, request: &InputRequest) -> Option<ClientCapabilities> {
    let declared = client.capabilities();
    let mut missing = ClientCapabilities::default();
    let granted = match request {
        InputRequest::Elicit(ElicitParams::Form(_)) => {
            missing.elicitation = Some(ElicitationCapability::new().form(RawMap::new()));
            client.revision >= Revision::V2025_06_18 && declared.has_form_elicitation()
        }
        InputRequest::Elicit(ElicitParams::Url(_)) => {
            missing.elicitation = Some(ElicitationCapability::new().url(RawMap::new()));
            client.revision >= Revision::V2025_11_25 && declared.has_url_elicitation()
        }
        InputRequest::CreateMessage(params) => {
            let tools = params.tools.is_some() || params.tool_choice.is_some();
            let mut sampling = SamplingCapability::new();
            sampling.tools = tools.then(RawMap::new);
            missing.sampling = Some(sampling);
            declared.sampling.is_some()
                && (!tools || (client.revision >= Revision::V2025_11_25 && declared.has_sampling_tools()))
        }
        InputRequest::ListRoots => {
            missing.roots = Some(RootsCapability::default());
            declared.roots.is_some()
        }
    };
    (!granted).then_some(missing)
}
