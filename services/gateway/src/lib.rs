//! REST and WebSocket doors onto the mesh.
