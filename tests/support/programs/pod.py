"""The program of a pod in tests of the process kubelet: it shows its inputs.

    pod.py --port=N [--config=FOLDER] [--exit=STATUS] [--ignore-sigterm] [WORD...]

GET /readyz follows the file `ready` in the folder of the configuration; /state is JSON with
arguments, environment, files and process id; POST /exit?7 ends the process with a status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FLAGS = dict(word.partition("=")[::2] for word in sys.argv[1:])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        folder = Path(FLAGS.get("--config", "/nowhere"))
        if self.path == "/readyz":
            ready = folder / "ready"
            is_ready = not ready.exists() or ready.read_text() == "yes"
            self._answer(200 if is_ready else 503, {})
            return
        files = {path.name: path.read_text() for path in folder.glob("*") if path.is_file()}
        state = {"arguments": sys.argv[1:], "environ": dict(os.environ), "files": files}
        self._answer(200, {**state, "pid": os.getpid(), "cwd": str(Path.cwd())})

    def do_POST(self) -> None:
        self._answer(200, {})
        print("asked to end", flush=True)
        os._exit(int(self.path.partition("?")[2]))

    def _answer(self, status: int, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        pass


def main() -> None:
    if "--exit" in FLAGS:
        print("ends at once", flush=True)
        sys.exit(int(FLAGS["--exit"]))
    server = ThreadingHTTPServer(("127.0.0.1", int(FLAGS["--port"])), Handler)

    def end(_number: int, _frame: object) -> None:
        if "--ignore-sigterm" not in FLAGS:
            threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, end)
    server.serve_forever()


if __name__ == "__main__":
    main()
