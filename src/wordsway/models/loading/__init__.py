"""Loading: from a name to a model's files (`locate`), and from files to an encoder or a whole model (`load`).

The bundled encoder, the sentiment classifier and randomly re-initialised weights are here too. Imports
`models.running`.
"""
