//! The engine on a real server. `tests/stores/run` starts one and names it in `BOWLINE_STORE_REDIS`.

mod contract;
mod restart;
mod server;
mod settings;
