"""Other servers around the same engine and image code, each as its own documents show it for one slow model.

They run in an environment of their own (requirements/extra/peers.txt). Each module is a program: port, then the
seconds of an edit. All of them are told to send no usage data.
"""
