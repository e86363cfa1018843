//! A process inside the node that makes, lists and removes virtual hosts: the node's own command starts a virtual machine for each
//! question, which takes a processor for a second or two.

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::rabbitmq::RabbitNode;

/// Reads one line per connection: a name makes that virtual host, which stays until the connection ends, `?name` lists its queues
/// and exchanges, `!name ports` closes its connections of clients with these ports, and `=` computes what follows.
const SCRIPT: &str = r#"
Asker = self(),
Number = fun(N) when is_integer(N) -> N; (_) -> 0 end,
List = fun(Host) ->
    Queues = rabbit_amqqueue:info_all(Host, [name, exclusive, messages, consumers]),
    Exchanges = rabbit_exchange:info_all(Host, [name]),
    unicode:characters_to_binary([
        [io_lib:format("queue\t~ts\t~p\t~b\t~b~n", [Name, Exclusive =:= true, Number(Messages), Number(Consumers)])
            || [{name, {resource, _, _, Name}}, {exclusive, Exclusive}, {messages, Messages}, {consumers, Consumers}] <- Queues],
        [io_lib:format("exchange\t~ts~n", [Name]) || [{name, {resource, _, _, Name}}] <- Exchanges],
        "end\n"
    ])
end,
Close = fun(Host, Ports) ->
    Of = fun(Pid) ->
        try
            [{peer_port, Client}, {vhost, Host}] = rabbit_networking:connection_info(Pid, [peer_port, vhost]),
            lists:member(Client, Ports)
        catch _:_ -> false
        end
    end,
    Closed = [rabbit_networking:close_connection(Pid, <<"test">>) || Pid <- rabbit_networking:connections(), Of(Pid)],
    io_lib:format("~b~nend~n", [length(Closed)])
end,
Compute = fun(Text) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Text)),
    {ok, Parsed} = erl_parse:parse_exprs(Tokens),
    {value, Value, _} = erl_eval:exprs(Parsed, []),
    io_lib:format("~w~nend~n", [Value])
end,
spawn(fun() ->
    {ok, Listener} = gen_tcp:listen(0, [binary, {packet, line}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(Listener),
    Asker ! {port, Port},
    Make = fun Make() ->
        {ok, Socket} = gen_tcp:accept(Listener),
        case gen_tcp:recv(Socket, 0) of
            {ok, <<"?", Line/binary>>} ->
                spawn(fun() ->
                    catch gen_tcp:send(Socket, List(string:trim(Line))),
                    gen_tcp:close(Socket)
                end);
            {ok, <<"!", Line/binary>>} ->
                spawn(fun() ->
                    [Host | Ports] = string:lexemes(string:trim(Line), " "),
                    catch gen_tcp:send(Socket, Close(Host, [binary_to_integer(One) || One <- Ports])),
                    gen_tcp:close(Socket)
                end);
            {ok, <<"=", Line/binary>>} ->
                spawn(fun() ->
                    catch gen_tcp:send(Socket, Compute(Line)),
                    gen_tcp:close(Socket)
                end);
            {ok, Line} ->
                Name = string:trim(Line),
                ok = rabbit_vhost:add(Name, <<"test">>),
                ok = rabbit_auth_backend_internal:set_permissions(
                    <<"guest">>, Name, <<".*">>, <<".*">>, <<".*">>, <<"test">>),
                Holder = spawn(fun() ->
                    receive held -> ok end,
                    gen_tcp:recv(Socket, 0),
                    gen_tcp:close(Socket),
                    catch rabbit_vhost:delete(Name, <<"test">>)
                end),
                ok = gen_tcp:controlling_process(Socket, Holder),
                gen_tcp:send(Socket, <<"+">>),
                Holder ! held;
            _ ->
                % Somebody only looked whether this listens.
                gen_tcp:close(Socket)
        end,
        Make()
    end,
    Make()
end),
receive {port, Port} -> Port end.
"#;

/// A queue of a virtual host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostQueue {
    /// Name.
    pub name: String,
    /// Belongs to one connection.
    pub exclusive: bool,
    /// Messages, handed out or not.
    pub messages: u64,
    /// Consumers.
    pub consumers: u64,
}

/// What a virtual host has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) queues: Vec<HostQueue>,
    /// Names of all exchanges but the broker's own.
    pub(super) exchanges: Vec<String>,
}

/// Begins it in a node; the port where it listens.
pub(super) async fn begin(node: &RabbitNode) -> Result<u16> {
    let printed = node.ctl(&["eval", SCRIPT]).await?;
    let port = printed.trim().parse::<u16>();
    port.with_context(|| format!("the node does not make hosts: {printed}"))
}

/// Makes a virtual host. The node removes it with all that is in it when the connection is closed: at the latest when this
/// process ends, in whatever way.
pub(super) async fn make(port: u16, name: &str) -> Result<TcpStream> {
    let mut held = TcpStream::connect(("127.0.0.1", port)).await?;
    held.write_all(format!("{name}\n").as_bytes()).await?;
    let made = held.read_u8().await;
    made.with_context(|| format!("the node did not make the virtual host {name}"))?;
    Ok(held)
}

/// Lists a virtual host.
pub(super) async fn list(port: u16, name: &str) -> Result<Listed> {
    read(&ask(port, &format!("?{name}")).await?)
}

/// Closes a virtual host's connections of clients with these ports; how many there were.
pub(super) async fn close(port: u16, name: &str, clients: &[u64]) -> Result<usize> {
    let clients: Vec<String> = clients.iter().map(u64::to_string).collect();
    let printed = ask(port, &format!("!{name} {}", clients.join(" "))).await?;
    let count = printed.lines().next().unwrap_or_default();
    count
        .parse()
        .with_context(|| format!("not a number: {printed}"))
}

/// What an expression of the node's own language is: a term without blanks.
pub(super) async fn compute(port: u16, expression: &str) -> Result<String> {
    let printed = ask(port, &format!("={expression}.")).await?;
    Ok(printed.lines().next().unwrap_or_default().to_owned())
}

/// Sends a line and reads the whole reply.
async fn ask(port: u16, line: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(format!("{line}\n").as_bytes()).await?;
    let mut printed = String::new();
    stream.read_to_string(&mut printed).await?;
    ensure!(
        printed.ends_with("end\n"),
        "the node did not answer {line}: {printed}"
    );
    Ok(printed)
}

fn read(printed: &str) -> Result<Listed> {
    let mut listed = Listed::default();
    for line in printed.lines() {
        match *line.split('\t').collect::<Vec<_>>() {
            ["queue", name, exclusive, messages, consumers] => listed.queues.push(HostQueue {
                name: name.to_owned(),
                exclusive: exclusive == "true",
                messages: messages.parse()?,
                consumers: consumers.parse()?,
            }),
            ["exchange", name] if name.is_empty() || name.starts_with("amq.") => {}
            ["exchange", name] => listed.exchanges.push(name.to_owned()),
            ["end"] => return Ok(listed),
            _ => bail!("unreadable line of the node: {line}"),
        }
    }
    bail!("the node's list has no end: {printed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_to_its_end() {
        let printed = "queue\ta:b\ttrue\t2\t1\nexchange\t\nexchange\tamq.topic\nexchange\tx\nend\n";
        let queue = HostQueue {
            name: "a:b".to_owned(),
            exclusive: true,
            messages: 2,
            consumers: 1,
        };
        let wanted = Listed {
            queues: vec![queue],
            exchanges: vec!["x".to_owned()],
        };
        assert_eq!(read(printed).unwrap(), wanted);
        assert!(read("queue\ta\tfalse\t0\t0\n").is_err());
        assert!(read("queue\ta\tfalse\t\t0\nend\n").is_err());
    }
}
