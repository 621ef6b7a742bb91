//! What the endpoint promises, request by request.

mod legacy;
mod modern;
mod socket;
mod wire;
