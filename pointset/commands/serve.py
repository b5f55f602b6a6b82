"""`pointset serve`: a trained model behind an address, for programs and browsers."""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import tempfile
import warnings
import zipfile
from collections import OrderedDict
from functools import partial
from html import escape
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from pointset.commands.attend import MOST_TO_ASK, live_page, plain_models
from pointset.commands.models import Model, load_model
from pointset.configuration import Cores, Positive
from pointset.data.axes import UsualUp
from pointset.data.readers.formats import SHAPE_SUFFIXES, suffix_of
from pointset.errors import PointsetError, escaped, one_line, quoted, require_extra
from pointset.runs.answering import Answering

if TYPE_CHECKING:
    import numpy as np
    from fastapi import FastAPI

SERVED = SHAPE_SUFFIXES - {".dae"}
"""Suffixes of files that are read for strangers; the entities of .dae, which is XML, may expand without limit."""
ZIPPED, MOST_RATIO = (".npz", ".3mf"), 20
"""Suffixes of archives, and the most bytes that they may unpack to for each of their own."""

MOST_PAGES = 100
"""Shapes whose live page can be asked for: the last ones, of 2,048 points each."""
LONGEST_NAME = 100
"""Characters of the name of an upload, from its end."""
MOST_AT_ONCE = 256
"""Connections; further ones are refused with the status 503."""
Port = Annotated[int, Meta(ge=0, le=65535, description="a whole number from 0 to 65,535")]
FAULTS = {
    408: "the upload took too long",
    413: "the upload is too large",
    415: "the suffix is not of a shape",
    422: "the file cannot be used",
    504: "the file took too long",
}
FORM = """<h1>Classify a mesh or a point cloud</h1>
<p>With {model}, which knows {count} classes. The file is deleted when it is answered.</p>
<form id="form" action="classify" method="post" enctype="multipart/form-data">
<input type="file" id="file" name="file" aria-label="file" accept="{suffixes}" required>
<button id="send">classify</button></form>
<p id="state" role="status"></p><p id="fault" role="alert"></p>
<ol id="answer" class="answer" aria-label="the most probable classes"></ol>
<p id="doubt"></p>
<p><a id="page" target="_blank" hidden>what the model looks at, as a live page</a></p>
<p><small><a href="docs">interface</a> · <a href="health">state</a></small></p>"""


def serve(
    *,
    model: Model = None,
    host: str = "127.0.0.1",
    port: Port = 8000,
    workers: Cores = 2,
    megabytes: Positive = 50.0,
    seconds: Positive = 30.0,
) -> None:
    """Answer uploads of meshes and point clouds with the classes that a trained model predicts.

    POST a file to /classify: the answer is what `pointset classify --json` says of it, warnings, and the address of a
    live page with the shape, for networks that run in a page. / is a form, /docs describes the interface (the page
    takes its scripts from the network), /openapi.json is that description, /health says whether all is well.

    Files are deleted when they are answered. The server has neither passwords nor encryption: for other people, put it
    behind a server that has both. Needs the extra serve.

    Example: `pointset serve --model runs/parts`, then `curl -F file=@chair.off http://127.0.0.1:8000/classify`

    Args:
        host: Address to listen at; 0.0.0.0 listens to all the network.
        port: Port to listen at; 0 takes a free one.
        workers: Number of processes, of 0.3 to 0.5 GB each; so many files are classified at once.
        megabytes: Largest size of an upload.
        seconds: Longest time for an upload, and longest time to classify it.
    """
    require_extra("serve", "a server", "fastapi", "uvicorn", "python_multipart")
    import uvicorn

    try:
        listening = socket.create_server((host, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PointsetError(f"{quoted(host)} port {port} cannot be used ({reason}): give --host or --port") from error
    processes = Answering(partial(ServedModel, model, max(1, (os.cpu_count() or 1) // workers)), workers, seconds)
    try:
        with listening, tempfile.TemporaryDirectory(prefix="pointset-", ignore_cleanup_errors=True) as folder:
            app = make_app(processes, Path(folder), int(megabytes * 1e6), seconds)
            config = uvicorn.Config(
                app,
                log_level="warning",
                limit_concurrency=MOST_AT_ONCE,
                server_header=False,
                timeout_graceful_shutdown=int(seconds) + 1,
            )
            address = f"http://{host}:{listening.getsockname()[1]}"
            print(f"{app.title} answers at {address} ({address}/docs); Ctrl-C ends it", flush=True)
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        processes.end()


class ServedModel:
    """A trained model in a process of its own, and what it says of files."""

    def __init__(self, model: str | None, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        self.trained = load_model(model)
        self.data = self.trained.data
        try:
            self.plain = plain_models(self.trained)
        except PointsetError:  # a baseline or a mixture, or parts that a page has not
            self.plain = []

    def describe(self) -> dict[str, Any]:
        """The name and the classes of the model."""
        return {"model": self.trained.name, "classes": self.data["classes"], "points": self.data["points"]}

    def classify(self, path: Path, up: UsualUp, keep_outliers: bool) -> "tuple[dict[str, Any], Any]":
        """What `pointset classify` says of a file, and the points of its live page, or None without a page."""
        from pointset.data.catalogue.folders import ShapeFile
        from pointset.data.loading import load_shape_like
        from pointset.evaluation.files import Failure, classify_files

        # In the folder of the file, errors and warnings have the name that the user knows.
        with contextlib.chdir(path.parent), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            file = Path(path.name)
            check_alone(file)
            shapes = [ShapeFile(file, path.name)]
            (answer,) = classify_files(self.trained.network, self.data, shapes, up=up, keep_outliers=keep_outliers)
            if isinstance(answer, Failure):
                raise PointsetError(answer.reason)
            messages = list(dict.fromkeys(one_line(warning.message) for warning in caught))
            cloud = None
            if self.plain:
                points = max(self.data["points"], MOST_TO_ASK)
                cloud = load_shape_like(self.data, file, points=points, up=up, keep_outliers=keep_outliers).raw
        content = {key: value for key, value in answer.as_dict().items() if key != "true_class"}
        return content | {"warnings": messages}, cloud

    def page(self, name: str, cloud: "np.ndarray") -> str:
        """The live page of a cloud that `classify` gave."""
        return live_page(self.plain, name, cloud, self.data["up"]).html


def check_alone(path: Path) -> None:
    """Refuse a file that names other files, or unpacks to far more than its size."""
    suffix = suffix_of(path.name)
    if suffix in (".glb", ".gltf"):
        from pointset.data.readers.mesh_reader import names_of_others

        if names := names_of_others(path):
            raise PointsetError(f"{path}: its numbers are in another file, {quoted(names[0])}: send one .glb file")
    if suffix in ZIPPED and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
        if unpacked > MOST_RATIO * path.stat().st_size:
            raise PointsetError(f"{path}: unpacks to {unpacked:,} bytes, more than {MOST_RATIO} times its size")


def make_app(processes: Answering, folder: Path, most_bytes: int, seconds: float) -> "FastAPI":
    """The application of a server for processes with a `ServedModel`; `folder` is empty and for uploads."""
    from fastapi import FastAPI, HTTPException, Request, UploadFile
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import HTMLResponse, JSONResponse

    import pointset
    from pointset.viz.html_page import page_of

    facts = processes.ask("describe")
    title = f"pointset serve {facts['model']}"
    app = FastAPI(title=title, version=pointset.__version__, max_body_size=most_bytes)
    app.add_middleware(TimelyUploads, seconds=seconds)
    pages: OrderedDict[str, tuple[str, Any]] = OrderedDict()
    faults: dict[int | str, dict[str, Any]] = {status: {"description": text} for status, text in FAULTS.items()}

    async def asked(name: str, method: str, *arguments: Any) -> Any:
        """The answer of a process, or the status of what went wrong."""
        try:
            return await processes.ask_later(method, *arguments)
        except PointsetError as error:
            raise HTTPException(422, str(error)) from error
        except TimeoutError as error:
            raise HTTPException(504, f"{name}: {error}: send fewer points or faces") from error
        except (EOFError, OSError) as error:
            raise HTTPException(500, f"{name}: its process died, perhaps for lack of memory: send less") from error
        except RuntimeError as error:
            raise HTTPException(500, f"{name}: {error}") from error

    @app.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"][1:]))
        return JSONResponse({"detail": f"{where}: {fault['msg']}"}, 422)

    @app.post("/classify", responses=faults)
    async def classify(
        request: Request, file: UploadFile, up: UsualUp = "auto", keep_outliers: bool = False
    ) -> dict[str, Any]:
        """Classify one mesh or point cloud; see `pointset classify --help` for the parameters."""
        name = escaped(PureWindowsPath(file.filename or "").name)[-LONGEST_NAME:]  # which knows both kinds of slashes
        suffix = suffix_of(name)
        if suffix not in SERVED:
            known = ", ".join(sorted(SERVED))
            raise HTTPException(415, f"{name}: expected a file that ends in one of {known}, not in {quoted(suffix)}")
        inside = Path(tempfile.mkdtemp(dir=folder))
        try:
            with (inside / name).open("wb") as copy:
                await asyncio.to_thread(shutil.copyfileobj, file.file, copy)
            answer, cloud = await asked(name, "classify", inside / name, up, keep_outliers)
        finally:
            await asyncio.to_thread(shutil.rmtree, inside, True)
        page = None
        if cloud is not None:
            token = secrets.token_urlsafe(16)
            page = str(request.url_for("live_page", token=token))
            pages[token] = name, cloud
            while len(pages) > MOST_PAGES:
                pages.popitem(last=False)
        return answer | {"page": page}

    @app.get("/pages/{token}", response_class=HTMLResponse)
    async def live_page(token: str) -> str:
        """A page that runs the model on a shape that was classified before."""
        if token not in pages:
            raise HTTPException(404, "this page is not kept any more: classify the shape again")
        name, cloud = pages[token]
        html: str = await asked(name, "page", name, cloud)
        return html

    @app.get("/health")
    async def health() -> dict[str, Any]:
        """The model, and that the server answers."""
        return {"status": "ok", "version": pointset.__version__, **facts}

    body = FORM.format(model=escape(facts["model"]), count=len(facts["classes"]), suffixes=",".join(sorted(SERVED)))
    page_of_form = page_of("plain", "pointset serve", {}, start="form", body=body)

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    async def form() -> str:
        return page_of_form

    return app


class TimelyUploads:
    """Refuses uploads that are too slow."""

    def __init__(self, app: Any, seconds: float) -> None:
        self.app, self.seconds = app, seconds

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        from fastapi import HTTPException

        end = asyncio.get_running_loop().time() + self.seconds

        async def received() -> Any:
            try:
                async with asyncio.timeout_at(end):
                    return await receive()
            except TimeoutError as error:
                raise HTTPException(408, f"an upload must arrive within {self.seconds:g} seconds") from error

        await self.app(scope, received if scope["type"] == "http" else receive, send)
