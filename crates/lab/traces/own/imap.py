"""A mail server that wants a password and takes none: for recordings and tests of password prompts.

usage: imap.py PORT-FILE    writes its port there, on loopback, and serves until it is killed
"""

import os
import socketserver
import sys


class Session(socketserver.StreamRequestHandler):
    def say(self, line):
        self.wfile.write(line.encode() + b"\r\n")

    def handle(self):
        self.say("* OK ready")
        for line in self.rfile:
            tag, _, rest = line.decode("utf-8", "replace").strip().partition(" ")
            verb = rest.split(" ")[0].upper()
            if verb == "CAPABILITY":
                self.say("* CAPABILITY IMAP4rev1")
                self.say(f"{tag} OK done")
            elif verb == "LOGIN":
                self.say(f"{tag} NO wrong password")
            elif verb == "LOGOUT":
                self.say("* BYE")
                self.say(f"{tag} OK done")
                return
            else:
                self.say(f"{tag} BAD unknown")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


with Server(("127.0.0.1", 0), Session) as server:
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    server.serve_forever()
