"""uvicorn's WebSockets, with an end for handshakes that cannot be read."""

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

REFUSED = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Sockets(WebSocketsSansIOProtocol):
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # One with another method, or with a body: uvicorn would neither answer it nor ever let go of it.
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self.close_sent = True
            self.transport.write(REFUSED)
            self.transport.close()
