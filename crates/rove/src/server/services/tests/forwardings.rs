//! Forwardings and the agent over channels.

use super::*;

/// A server that echoes.
async fn echo() -> (u16, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let task = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = stream.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    (port, task)
}

async fn is_echoed(mut connection: impl Duplex) {
    connection.write_all(b"hello").await.unwrap();
    connection.shutdown().await.unwrap();
    let mut said = String::new();
    soon(connection.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "hello");
}

/// A port where nobody listens as long as this is held.
fn refusing() -> (u16, socket2::Socket) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    (address.port(), socket)
}

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("rove-services-{name}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[tokio::test]
async fn local_forwardings() {
    let (there, _echo) = echo().await;
    let socket = path("local");
    let (refused, _held) = refusing();
    let forwards = [
        (Side::Local, format!("127.0.0.1:1:localhost:{there}")),
        (Side::Local, format!("127.0.0.1:2:127.0.0.1:{refused}")),
        (Side::Local, "127.0.0.1:3".to_owned()),
        (Side::Local, format!("{}:127.0.0.1:{there}", socket.display())),
    ];
    let forwards: Vec<_> = forwards.iter().map(|(side, text)| (*side, text.as_str())).collect();
    let ready = ready(&forwards, None).await;
    let [here, nowhere, socks, _] = ready.ports()[..] else { panic!("four listen") };
    let mut joined = joined(config(None), ready);
    is_echoed(TcpStream::connect(("127.0.0.1", here)).await.unwrap()).await;
    is_echoed(UnixStream::connect(&socket).await.unwrap()).await;
    let mut closed = TcpStream::connect(("127.0.0.1", nowhere)).await.unwrap();
    assert!(soon(closed.read_u8()).await.is_err());
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Settled));
    let told = format!("the host cannot reach [127.0.0.1]:{refused}: connection refused");
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Warning(told)));

    for (early, answers) in [(
        &b"\x05\x01\x00\x05\x01\x00\x03\x09localhost"[..],
        &b"\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0"[..],
    )] {
        let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
        connection.write_all(early).await.unwrap();
        connection.write_u16(there).await.unwrap();
        let mut answered = vec![0; answers.len()];
        soon(connection.read_exact(&mut answered)).await.unwrap();
        assert_eq!(answered, answers);
        is_echoed(connection).await;
    }
    let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    connection.write_all(b"\x04\x01").await.unwrap();
    connection.write_u16(refused).await.unwrap();
    connection.write_all(b"\x7f\0\0\x01me\0").await.unwrap();
    let mut answered = Vec::new();
    soon(connection.read_to_end(&mut answered)).await.unwrap();
    assert_eq!(answered, b"\0\x5b\0\0\0\0\0\0");
}

#[tokio::test]
async fn remote_forwardings() {
    let (here, _echo) = echo().await;
    let socket = path("remote");
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().map(|at| (at.port(), taken)).unwrap();
    let (refused, _held) = refusing();
    let forwards = [
        (Side::Remote, format!("0:localhost:{here}")),
        (Side::Remote, format!("0:127.0.0.1:{refused}")),
        (Side::Remote, format!("{}:127.0.0.1:{here}", socket.display())),
        (Side::Remote, format!("127.0.0.1:{}:127.0.0.1:{here}", taken.0)),
        (Side::Remote, "0".to_owned()),
    ];
    let forwards: Vec<_> = forwards.iter().map(|(side, text)| (*side, text.as_str())).collect();
    let mut joined = joined(config(None), ready(&forwards, None).await);
    let (mut failed, mut ports) = (Vec::new(), Vec::new());
    loop {
        match soon(joined.news.recv()).await.unwrap() {
            Notice::Settled => break,
            Notice::Failed(text) => failed.push(text),
            Notice::Warning(text) => {
                let port: Option<u16> = text.split(' ').find_map(|word| word.parse().ok());
                ports.push((text, port.expect("the port that the host chose is told")));
            }
            Notice::Note(_) | Notice::Step(_) => {}
        }
    }
    assert_eq!(failed, [format!("the host cannot listen on [127.0.0.1]:{}: it is taken", taken.0)]);
    let port_for = |what: &str| {
        let told = ports.iter().find(|(text, _)| text.ends_with(what));
        told.unwrap_or_else(|| panic!("{what} in {ports:?}")).1
    };
    let there = port_for(&format!("[localhost]:{here}"));
    let nowhere = port_for(&format!("[127.0.0.1]:{refused}"));
    let socks = port_for("where SOCKS says");
    let mut closed = TcpStream::connect(("127.0.0.1", nowhere)).await.unwrap();
    assert!(soon(closed.read_u8()).await.is_err());
    let told = format!("cannot reach [127.0.0.1]:{refused} for the host: connection refused");
    assert_eq!(soon(joined.news.recv()).await, Some(Notice::Warning(told)));
    is_echoed(TcpStream::connect(("127.0.0.1", there)).await.unwrap()).await;
    is_echoed(UnixStream::connect(&socket).await.unwrap()).await;
    let mut connection = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    connection.write_all(b"\x05\x01\x00\x05\x01\x00\x01\x7f\0\0\x01").await.unwrap();
    connection.write_u16(here).await.unwrap();
    soon(connection.read_exact(&mut [0; 12])).await.unwrap();
    is_echoed(connection).await;
}

/// A port that another session has got meanwhile is a forwarding that failed, with all that follows from that.
#[tokio::test]
async fn a_lost_port_has_failed() {
    let (streams, server) = rove_streams::in_memory();
    let (tell, mut news) = mpsc::channel(NOTICES_MAX);
    let ready = ready(&[(Side::Remote, "1080")], None).await;
    let _serving = tokio::spawn(ready.serve(streams, Callbacks::default(), tell));
    let (_, mut control) = soon(server.accept()).await.unwrap();
    control.write_all(&[CONNECTED, 0, 0, GIVEN_UP]).await.unwrap();
    let failed = async {
        loop {
            match news.recv().await.unwrap() {
                Notice::Failed(text) => return text,
                Notice::Settled | Notice::Step(_) => {}
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(soon(failed).await, "another session of yours listens on 1080 of the host now");
}

/// The user learns that connections have to wait for others.
#[tokio::test]
async fn a_host_that_serves_no_more_says_so() {
    let (streams, server) = rove_streams::in_memory();
    let (tell, mut news) = mpsc::channel(NOTICES_MAX);
    let ready = ready(&[(Side::Remote, "0")], None).await;
    let _serving = tokio::spawn(ready.serve(streams, Callbacks::default(), tell));
    let (request, control) = soon(server.accept()).await.unwrap();
    let Some(Request::Listen(id, listen)) = Request::decode(&request) else {
        panic!("{request:?}")
    };
    let served = Arc::new(Semaphore::new(1));
    let _listening =
        tokio::spawn(async move { listen_for(id, &listen, control, server, &served).await });
    let mut two: Option<(u16, [TcpStream; 2])> = None;
    loop {
        let Notice::Warning(text) = soon(news.recv()).await.unwrap() else { continue };
        let Some((port, _connections)) = &two else {
            let port: u16 = text.split(' ').find_map(|word| word.parse().ok()).unwrap();
            let connect = async || TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            two = Some((port, [connect().await, connect().await]));
            continue;
        };
        let wanted = format!("192 connections are forwarded at a time; more to {port} wait");
        assert_eq!(text, format!("on the host, {wanted}"));
        return;
    }
}

/// However many sockets listen, only connections take places.
#[tokio::test]
async fn sockets_that_listen_take_no_places() {
    let (client, server) = rove_streams::in_memory();
    let served = Arc::new(Semaphore::new(1));
    let (mut ports, mut controls) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let listen = Spec::remote("0").unwrap().listen;
        let mut control = client.open(b"").await.unwrap();
        let (_, channel) = server.accept().await.unwrap();
        let (server, served) = (server.clone(), Arc::clone(&served));
        tokio::spawn(
            async move { listen_for(Id(number), &listen, channel, server, &served).await },
        );
        assert_eq!(soon(control.read_u8()).await.unwrap(), CONNECTED);
        ports.push(control.read_u16().await.unwrap());
        controls.push(control);
    }
    let _connection = TcpStream::connect(("127.0.0.1", ports[1])).await.unwrap();
    let (request, _channel) = soon(client.accept()).await.unwrap();
    assert_eq!(Call::decode(&request), Some(Call::Back(Id(1))));
}

/// A server may call back only under a number that was given to it, and reach no agent that was not
/// offered.
#[tokio::test]
async fn a_hostile_server_gets_nothing() {
    let joined = joined(config(None), ready(&[], None).await);
    for call in [Call::Back(Id(0)), Call::Back(Id(77)), Call::Agent] {
        let mut channel = joined.server.open(&call.encode()).await.unwrap();
        let error = soon(channel.read_u8()).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset, "{call:?}");
    }
    for request in [
        Request::Connect(crate::services::forward::spec::Endpoint {
            host: "localhost".into(),
            port: 22,
        }),
        Request::Listen(Id(1), Listen::Unix("/tmp/never".into())),
        Request::ConnectUnix("/tmp/never".into()),
    ] {
        let mut channel = joined.server.open(&request.encode()).await.unwrap();
        assert!(soon(channel.read_u8()).await.is_err(), "{request:?}");
    }
    assert!(!std::path::Path::new("/tmp/never").exists());
}

/// An agent that answers listing with no keys, signing with a signature of nothing, and adding with
/// success.
async fn agent_at(path: &std::path::Path) -> JoinHandle<()> {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Ok(Some(message)) = agent::read(&mut stream).await {
                let answer: &[u8] = match message[0] {
                    11 => &[12, 0, 0, 0, 0],
                    13 => &[14, 0, 0, 0, 0],
                    _ => &[6],
                };
                agent::write(&mut stream, answer).await.unwrap();
            }
        }
    })
}

#[tokio::test]
async fn the_agent_lists_and_signs_and_no_more() {
    let path = path("agent");
    let _agent = agent_at(&path).await;
    let mut socket = Socket::open().unwrap();
    socket.own().unwrap();
    let there = socket.path().to_owned();
    let mut joined = joined(config(Some(socket)), ready(&[], Some(path)).await);
    let mut program = UnixStream::connect(&there).await.unwrap();
    for (question, answer) in [
        (&[11][..], &[12, 0, 0, 0, 0][..]),
        (&[13, 1, 2, 3], &[14, 0, 0, 0, 0]),
        (&[17, 0], agent::FAILURE),
        (&[20, 0], agent::FAILURE),
        (&[27, 0], agent::FAILURE),
        (&[11], &[12, 0, 0, 0, 0]),
    ] {
        agent::write(&mut program, question).await.unwrap();
        let answered = soon(agent::read(&mut program)).await.unwrap();
        assert_eq!(answered.as_deref(), Some(answer), "{question:?}");
    }
    // Past the server's own check, the client does not take its word either.
    for question in [&[17, 0][..], &[20, 0], &[27, 0], &[19]] {
        let mut channel = joined.server.open(&Call::Agent.encode()).await.unwrap();
        agent::write(&mut channel, question).await.unwrap();
        let answered = soon(agent::read(&mut channel)).await.unwrap();
        assert_eq!(answered.as_deref(), Some(agent::FAILURE), "{question:?}");
    }
    let mut told = Vec::new();
    while let Ok(news) = joined.news.try_recv() {
        told.push(news);
    }
    let signed = Notice::Note("a program on the host uses your agent".into());
    assert!(told.contains(&signed), "{told:?}");

    // A length beyond the limit ends the conversation, and costs nothing.
    program.write_all(&[0, 4, 0, 1, 11]).await.unwrap();
    assert!(soon(program.read_u8()).await.is_err());
    joined.streams.close();
    soon(async {
        while there.exists() {
            clock::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
