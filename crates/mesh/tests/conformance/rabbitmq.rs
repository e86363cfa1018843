//! RabbitMQ.

mod native {
    use crate::harness::World;
    use tg_mesh::bus::Mode;

    crate::suite::suite!(World::rabbit(Mode::Native));
}

mod interop {
    use crate::harness::World;
    use tg_mesh::bus::Mode;

    crate::suite::suite!(World::rabbit(Mode::Interop));
}
